/**
 * Races between ranks of several hosts: `onesided run --hosts --races`. Hosts are this machine, with clocks that are
 * hours apart and go differently; and network namespaces, where they can be made, which a cable connects.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadNative } from '../../src/native.ts';
import type { RaceReport } from '../../src/races/race-findings.ts';
import { type Finished, start } from '../launcher/command.ts';
import { RACE_CASES } from '../ranks/support/races/all-cases.ts';
import { temporaryFolder } from '../support/folders.ts';
import { programOf } from '../support/ranks.ts';
import { ALL } from './run-program.ts';

const folder = temporaryFolder('race-hosts');
const LIBRARY = fileURLToPath(new URL('../../dist/index.js', import.meta.url));

/** Host `b` has another clock: everything there, its agent as well, reads this one. */
const CLOCK = join(folder, 'clock.cjs');
writeFileSync(
  CLOCK,
  `const { bigint } = process.hrtime;
process.hrtime.bigint = () => {
  const now = bigint();
  return now + 7_200_000_000_000n + now / 10_000n;
};`,
);
const HERE = join(folder, 'here');
writeFileSync(
  HERE,
  `#!/bin/sh
host=$1; shift
if [ $host = b ]; then export NODE_OPTIONS="--require ${CLOCK}"; fi
exec "$@"
`,
);
chmodSync(HERE, 0o755);

const PROGRAM = join(folder, 'program.mjs');
writeFileSync(
  PROGRAM,
  `import { init, Window } from ${JSON.stringify(LIBRARY)};
const [how] = process.argv.slice(2);
const world = await init();
const win = await Window.allocate(world, Int32Array, 4, { name: 'halo' });
const next = (world.rank + 1) % world.size;
await win.lockAll();
for (let i = 0; i < 20; i++) {
  win.put(Int32Array.of(i), next, 0);
  if (how !== 'racy') await win.flush(next);
  await world.barrier();
  if (win.local[0] !== i && how !== 'racy') throw new Error('the value of rank ' + world.rank);
  await world.barrier();
}
if (how === 'exits' && world.rank === 1) process.exit(3);
await win.unlockAll();
await win.free();
if (how === 'sync') world.finalizeSync();
else await world.finalize();
`,
);

interface Options {
  readonly hosts?: string;
  readonly ssh?: string;
  readonly races?: string;
  readonly options?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

function searched(
  script: string,
  args: readonly string[],
  { hosts = 'a:1,b:1', ssh = HERE, races = '--races', options = [], env = {} }: Options = {},
): Promise<Finished> {
  const command = ['run', '--hosts', hosts, '--ssh', ssh, '--timeout', '60', races, ...options, script, '--', ...args];
  return start(command, { env: { ...process.env, NODE_OPTIONS: '', ...env } }).finished;
}

describe.skipIf(loadNative() === undefined)('ranks of several hosts', () => {
  test('a race is told, and how well the clocks are set', async () => {
    const json = join(folder, 'racy.json');
    const { code, stderr } = await searched(PROGRAM, ['racy'], { races: `--races=${json}` });
    expect(stderr).toContain('to mend it: flush(');
    expect(stderr).toMatch(/onesided: {3}clocks of 2 hosts: set to within \d+ µs/);
    expect(code).toBe(66);
    const { races, unseen, clocks } = JSON.parse(readFileSync(json, 'utf8')) as RaceReport;
    expect(races.map(({ where }) => where.window)).toContain('halo');
    expect(unseen).toEqual([]);
    expect(clocks!.hosts).toBe(2);
    expect(clocks!.within).toBeGreaterThan(0);
  });

  test.each(['calm', 'sync'])('nobody is accused, and nothing is left behind: %s', async (how) => {
    const own = join(folder, `tmp-${how}`);
    mkdirSync(own);
    const { code, stdout, stderr } = await searched(PROGRAM, [how], { hosts: 'a:2,b:2', env: { TMPDIR: own } });
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^onesided: races: no race;.*\nonesided: {3}clocks of 2 hosts: .*\n$/);
    expect(code).toBe(0);
    expect(readdirSync(own).filter((name) => name.includes('races'))).toEqual([]);
  });

  test('what was told before a rank ended is looked at', async () => {
    const { code, stderr } = await searched(PROGRAM, ['exits']);
    expect(stderr).toContain('onesided: races: no race');
    expect(stderr).not.toContain('nothing was told');
    expect(stderr).toContain('rank 1 exited with code 3');
    expect(code).toBe(3);
  });

  test('races cannot be thrown there', async () => {
    const { code, stderr } = await searched(PROGRAM, [], { races: '--races=throw' });
    expect(stderr).toContain('--races=throw needs ranks of this host');
    expect(code).toBe(2);
  });

  const some = ALL ? RACE_CASES : RACE_CASES.filter(({ name }) => /sync\/03[45]|sync\/00[12]/.test(name));
  test.each(some)('$name, racy: $racy', async ({ name, racy, size }) => {
    const hosts = `a:1,b:${size - 1}`;
    const { code, stderr } = await searched(programOf('races'), [name], { hosts });
    expect(code, stderr).toBe(racy ? 66 : 0);
  });
});

const names = ['a', 'b'].map((name) => `orh${process.pid}${name}`);

/** Makes two hosts and a cable. @returns why it cannot */
function connected(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  if (!/^libfabric +yes/m.test(spawnSync(process.execPath, ['bin/onesided.mjs', 'info'], { encoding: 'utf8' }).stdout))
    return 'there is no libfabric (apt-get install libfabric1)';
  const lines = [
    ...names.map((name) => `netns add ${name}`),
    `link add races netns ${names[0]} type veth peer name races netns ${names[1]}`,
    ...names.flatMap((name, i) => [
      `-n ${name} address add 10.79.0.${i + 1}/24 dev races`,
      `-n ${name} link set lo up`,
      `-n ${name} link set races up`,
    ]),
  ];
  for (const line of lines) {
    const { status, error, stderr } = spawnSync('ip', line.split(' '), { encoding: 'utf8' });
    if (status !== 0) return `ip ${line}: ${error?.message ?? stderr}`;
  }
  return undefined;
}

describe.skipIf(loadNative() === undefined)('ranks of hosts that a network connects', () => {
  let unable: string | undefined;
  const namespace = join(folder, 'namespace');
  beforeAll(async () => {
    unable = connected();
    if (unable !== undefined) return;
    const stateOf = (name: string): string =>
      spawnSync('ip', ['-n', name, '-brief', 'link', 'show', 'races'], { encoding: 'utf8' }).stdout;
    for (const name of names) while (!stateOf(name).includes(' UP ')) await sleep(20);
    writeFileSync(
      namespace,
      `#!/bin/sh
if [ $1 = ${names[1]} ]; then export NODE_OPTIONS="--require ${CLOCK}"; fi
exec ip netns exec "$@"
`,
    );
    chmodSync(namespace, 0o755);
  });
  afterAll(() => {
    for (const name of names) spawnSync('ip', ['netns', 'del', name]);
  });

  test.for([
    ['racy', 66],
    ['calm', 0],
  ] as const)('%s', async ([how, expected], { skip }) => {
    if (unable !== undefined) return skip(unable);
    const hosts = names.map((name) => `${name}:2`).join(',');
    const { code, stderr } = await searched(PROGRAM, [how], { hosts, ssh: namespace });
    expect(code, stderr).toBe(expected);
    expect(stderr).toMatch(/onesided: {3}clocks of 2 hosts: set to within \d+ µs/);
  });

  const some = ALL ? RACE_CASES : RACE_CASES.filter(({ name }) => /sync\/03[45]/.test(name));
  test.for(some)('$name, racy: $racy', async ({ name, racy, size }, { skip }) => {
    if (unable !== undefined) return skip(unable);
    const hosts = `${names[0]}:1,${names[1]}:${size - 1}`;
    const { code, stderr } = await searched(programOf('races'), [name], { hosts, ssh: namespace });
    expect(code, stderr).toBe(racy ? 66 : 0);
  });
});
