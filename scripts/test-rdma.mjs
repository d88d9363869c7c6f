/**
 * `npm run test:rdma`: boots a guest with a Soft-RoCE device, which is a real verbs device, and runs test/rdma/ in it;
 * then two guests connected by a cable, and runs test/rdma/hosts/ in both. Prints what the guests print; fails if a
 * test fails, or no device came up.
 *
 *     node scripts/test-rdma.mjs [--only WORD] [--script test/rdma/guest/tests.sh [--hosts 1]] [--timeout 7200]
 *
 * With --only, the files of test/rdma/ whose names have the word, in one guest.
 *
 * Needs Linux and these packages of Debian: see PACKAGES. The guests see the host's files, and cannot write to them.
 * Their processors are emulated: /dev/kvm is not needed.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { orExplain } from './explain.mjs';

const PACKAGES = [
  ...['qemu-system-x86', 'linux-image-amd64', 'busybox-static', 'cpio', 'kmod', 'iproute2'],
  ...['rdma-core', 'libibverbs-dev', 'ibverbs-providers', 'ibverbs-utils', 'perftest'],
];
const COMMANDS = ['qemu-system-x86_64', 'busybox', 'cpio', 'modprobe', 'rdma', 'ibv_rc_pingpong'];
const MODULES = [
  'crc32_generic',
  'rdma_rxe',
  'ib_uverbs',
  'rdma_ucm',
  '9pnet_virtio',
  '9p',
  'virtio_pci',
  'virtio_net',
  // Losses (bench/device/supersteps.ts).
  'sch_ingress',
  'cls_matchall',
  'act_gact',
];

/** What runs, and on how many hosts that are connected with each other. */
const STAGES = [
  ['test/rdma/guest/tests.sh', 1],
  ['test/rdma/guest/two-hosts.sh', 2],
];

/**
 * The emulated processor. With ONESIDED_GUEST_CLOCK=instructions it has one core, which executes an instruction in each
 * nanosecond of the guest: then times in the guest do not depend on what else this machine does, and tell how much a
 * program does rather than how long it takes (bench/device.mjs).
 */
const PROCESSOR =
  process.env['ONESIDED_GUEST_CLOCK'] === 'instructions'
    ? ['-accel', 'tcg,thread=single,tb-size=1024', '-icount', 'shift=0', '-smp', '1']
    : ['-accel', 'tcg,thread=multi,tb-size=1024', '-smp', '2'];

/**
 * Without protection keys: the kernel gives a program its own back after each of its threads has run in between, and
 * the emulation then forgets all translations of addresses, which a processor does not. Programs whose code is spread
 * over many pages, as Node's is, paid for it with most of their time.
 */
const MODEL = 'max,pku=off';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values } = orExplain(() =>
  parseArgs({
    options: {
      script: { type: 'string' },
      only: { type: 'string', default: '' },
      hosts: { type: 'string', default: '1' },
      timeout: { type: 'string', default: '7200' },
    },
  }),
);

process.env['PATH'] = `${process.env['PATH']}:/usr/sbin:/sbin`;
const missing = COMMANDS.filter((command) => spawnSync('sh', ['-c', `command -v ${command}`]).status !== 0);
const kernels = tryReaddir('/boot')
  .filter((name) => name.startsWith('vmlinuz-'))
  .sort(byVersion);
if (missing.length > 0 || kernels.length === 0) {
  const what = [...missing, ...(kernels.length === 0 ? ['a kernel in /boot'] : [])];
  console.error(`missing: ${what.join(', ')}; apt-get install ${PACKAGES.join(' ')}`);
  process.exit(1);
}
const version = kernels.at(-1).slice('vmlinuz-'.length);

const work = join(root, 'build/rdma');
rmSync(work, { recursive: true, force: true });
// Their names must be short.
const sockets = mkdtempSync(join(tmpdir(), 'onesided-rdma-'));
/** The guest's first file system: busybox, the modules in the order in which they are loaded, and its first program. */
function makeInitrd() {
  const tree = join(work, 'initrd');
  for (const folder of ['bin', 'proc', 'sys', 'dev', 'host', 'modules'])
    mkdirSync(join(tree, folder), { recursive: true });
  const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim();
  for (const name of ['busybox', 'sh']) copyFileSync(busybox, join(tree, 'bin', name));
  const order = [];
  for (const module of MODULES) {
    const depends = execFileSync('modprobe', ['-S', version, '--show-depends', module], { encoding: 'utf8' });
    for (const [, path] of depends.matchAll(/^insmod (\S+)/gm)) if (!order.includes(path)) order.push(path);
  }
  for (const path of order) copyFileSync(path, join(tree, 'modules', basename(path)));
  writeFileSync(join(tree, 'modules/order'), `${order.map((path) => basename(path)).join('\n')}\n`);
  copyFileSync(join(root, 'test/rdma/guest/init'), join(tree, 'init'));
  chmodSync(join(tree, 'init'), 0o755);
  execFileSync('sh', ['-c', `find . | cpio -o -H newc --quiet | gzip -1 > '${join(work, 'initrd.gz')}'`], {
    cwd: tree,
  });
}

/**
 * Boots guests that are connected with each other, and runs the script in each.
 * @returns 0 if it has ended with 0 in all of them
 */
async function boot(script, count) {
  const guests = Array.from({ length: count }, (_, host) => new Guest(script, host, count));
  const late = sleep(Number(values.timeout) * 1000, 'late', { ref: false });
  const ended = Promise.all(guests.map((guest) => guest.ended));
  // A guest that fails is the end: the others would wait for it.
  const failed = new Promise((resolve) => {
    for (const guest of guests) void guest.ended.then(() => guest.code !== 0 && resolve('failed'));
  });
  for (const guest of guests) guest.onCommand = (command) => obey(command, guests);
  if ((await Promise.race([ended, failed, late])) === 'late') {
    console.error(`the guests did not end within ${values.timeout} s (--timeout)`);
  }
  for (const guest of guests) guest.kill();
  await ended;
  return guests.every(({ code }) => code === 0) ? 0 : 1;
}

/** What tests ask for, from outside the guests. */
function obey(command, guests) {
  if (command === 'unplug' || command === 'plug') {
    for (const guest of guests) guest.monitor(`set_link n0 ${command === 'plug' ? 'on' : 'off'}`);
  } else if (command === 'kill') guests[1].kill();
}

class Guest {
  /** The exit code that the guest has said last. */
  code = 1;
  onCommand = () => {};
  #qemu;
  #monitor;

  constructor(script, host, count) {
    this.#monitor = join(sockets, `monitor${host}`);
    const socket = (of) => join(sockets, `cable${of}`);
    const network =
      count === 1
        ? // It takes what the guest sends to groups. Nobody would, on a hub, and packets that do not leave are waited
          // for.
          'user,restrict=on,id=n0'
        : `dgram,id=n0,local.type=unix,local.path=${socket(host)},remote.type=unix,remote.path=${socket(1 - host)}`;
    this.#qemu = spawn(
      'qemu-system-x86_64',
      [
        ...PROCESSOR,
        ...['-cpu', MODEL, '-m', count === 1 ? '4096' : '3072'],
        ...['-nodefaults', '-no-reboot', '-display', 'none', '-serial', 'stdio'],
        ...['-monitor', `unix:${this.#monitor},server=on,wait=off`],
        ...['-kernel', `/boot/vmlinuz-${version}`, '-initrd', join(work, 'initrd.gz')],
        '-append',
        `console=ttyS0 quiet panic=-1 mitigations=off no_timer_check onesided.script=${script} ` +
          `onesided.path=${dirname(process.execPath)} onesided.host=${host} onesided.only=${values.only}`,
        ...['-virtfs', 'local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap'],
        ...['-netdev', network, '-device', `virtio-net-pci,netdev=n0,mac=52:54:00:00:00:0${host + 1}`],
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const lines = createInterface({ input: this.#qemu.stdout });
    lines.on('line', (line) => {
      console.log(count === 1 ? line : `[${host}] ${line}`);
      const [, code] = /onesided-guest: exit code (\d+)/.exec(line) ?? [];
      if (code !== undefined) this.code = Number(code);
      const [, command] = /onesided-guest: please (\w+)/.exec(line) ?? [];
      if (command !== undefined) this.onCommand(command);
    });
    this.ended = new Promise((resolve, reject) => {
      this.#qemu.on('error', reject);
      this.#qemu.on('close', resolve);
    });
  }

  monitor(command) {
    const socket = connect(this.#monitor, () => socket.end(`${command}\n`));
    socket.resume();
  }

  kill() {
    this.#qemu.kill('SIGKILL');
  }
}

function tryReaddir(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function byVersion(a, b) {
  return a.localeCompare(b, undefined, { numeric: true });
}

makeInitrd();
if (!/^[\w.-]*$/.test(values.only)) throw new Error(`--only must be a part of a file's name, not ${values.only}`);
const stages =
  values.script !== undefined
    ? [[values.script, Number(values.hosts)]]
    : values.only === ''
      ? STAGES
      : STAGES.slice(0, 1);
for (const [script, hosts] of stages) process.exitCode ||= await boot(join(root, script), hosts);
rmSync(sockets, { recursive: true });
