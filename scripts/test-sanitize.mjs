/**
 * The native code under sanitizers (docs/decisions/016-sanitizers.md):
 *
 *     node scripts/test-sanitize.mjs                    everything
 *     node scripts/test-sanitize.mjs address test/native   one of "faults", "rdma", "address", "thread", "libfabric",
 *     "stress"; and which tests, or which programs
 *
 * - faults: what is deliberately wrong is reported, each kind, and what is right is not. Otherwise the rest would say
 *   nothing.
 * - address: tests on an addon with AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer, in an ordinary
 *   Node.
 * - rdma: hostile calls of what there is of RDMA, on both addons and a device that is only bookkeeping; those of
 *   helpers and of barriers (threads that serve other ranks) with programs of their own.
 * - thread: tests on an addon with ThreadSanitizer, likewise.
 * - libfabric: tests of queue pairs over TCP on both addons, where libfabric is installed.
 * - stress: the addon's threads without Node, driven hard, under ThreadSanitizer.
 *
 * Whatever any process of a run reports fails it, whatever the tests say. Reports are in build/sanitize/reports.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const out = join(root, 'build', 'sanitize');
const supplement = join(root, 'native', 'test');

/** What runs where. Ranks are processes and inherit the environment. */
const TESTS = {
  address: ['test/native', 'test/providers', 'test/transfer', 'test/verbs', 'test/window/user-memory.test.ts'],
  thread: ['test/native'],
  libfabric: ['verbs', 'batches', 'batches-under-way'].map((name) => `test/rdma/${name}.test.ts`),
};
/** In a stack: the addon, one of its sources, and what the tests of the harness and the stress programs are made of. */
const OURS = /\/native\/|onesided\.node|faults\.node|stress-/;
const STRESS = ['accumulate', 'server', 'parker', 'waiter', 'helper', 'barrier'];
/** Those of them that need a device. */
const ON_VERBS = ['helper', 'barrier'];
/** Programs of test/native/programs/ that call what there is of RDMA. */
const HOSTILE = ['rdma-hostile', 'rdma-hostile-helper', 'rdma-hostile-barrier'];
/** Calls of native/test/faults.cc, and what the report says. */
const FAULTS = {
  address: {
    heapOverflow: /AddressSanitizer: heap-buffer-overflow/,
    useAfterFree: /AddressSanitizer: heap-use-after-free/,
    typedArrayOverflow: /AddressSanitizer: heap-buffer-overflow/,
    signedOverflow: /runtime error: signed integer overflow/,
    misaligned: /runtime error: store to misaligned address/,
    numberToInteger: /runtime error: 1e\+300 is outside the range of representable values/,
    leak: /LeakSanitizer: detected memory leaks/,
    leakReference: /LeakSanitizer: detected memory leaks/,
    nothing: undefined,
  },
  thread: { race: /ThreadSanitizer: data race/, nothing: undefined },
};

const [only, ...chosen] = process.argv.slice(2);
if (only !== undefined && !['faults', 'rdma', 'address', 'thread', 'libfabric', 'stress'].includes(only))
  stop(`there is no step "${only}"`);
if (process.platform !== 'linux') stop('the addon needs Linux');
const wants = (step) => only === undefined || only === step;
const isChosen = (name) => chosen.length === 0 || chosen.includes(name);

let failed = 0;
const reports = join(out, 'reports');
rmSync(reports, { recursive: true, force: true });
mkdirSync(reports, { recursive: true });
const began = Date.now();

for (const kind of ['address', 'thread']) {
  if (![kind, 'faults', 'rdma', 'libfabric', ...(kind === 'thread' ? ['stress'] : [])].some(wants)) continue;
  build(kind);
  if (wants('faults')) for (const [fault, expected] of Object.entries(FAULTS[kind])) tryFault(kind, fault, expected);
  if (wants('rdma')) for (const name of HOSTILE.filter(isChosen)) hostileCalls(kind, name);
  if (wants(kind)) runTests(kind, chosen.length > 0 ? chosen : TESTS[kind]);
  if (wants('libfabric')) runOnLibfabric(kind);
}
if (wants('stress')) {
  for (const name of STRESS.filter(isChosen)) {
    stress(name, false);
    stress(name, true);
  }
}
console.log(`${failed === 0 ? 'sanitizers: nothing found' : `sanitizers: ${failed} FAILED`}, ${seconds(began)} s`);
process.exit(failed === 0 ? 0 : 1);

function build(kind) {
  const start = Date.now();
  const cmakeJs = join(root, 'node_modules', 'cmake-js', 'bin', 'cmake-js');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      cmakeJs,
      'compile',
      '-d',
      join(root, 'native'),
      '-O',
      join(out, kind),
      `--CDONESIDED_SANITIZE=${kind}`,
      '-l',
      'error',
    ],
    { encoding: 'utf8' },
  );
  if (status !== 0) stop(`the addon could not be built with -fsanitize=${kind}:\n${stdout}${stderr}`);
  console.log(`built with -fsanitize=${kind}, ${seconds(start)} s`);
}

/**
 * The environment of a process with the addon of this kind, and where it reports. The runtime of a sanitizer must come
 * first in a process, so it is preloaded; its path is the compiler's. `swap.cjs`, which Node loads in each process and
 * worker, has the other addon loaded in the usual one's place.
 */
function environment(kind, name) {
  const log = join(reports, name);
  mkdirSync(log, { recursive: true });
  const shared = `log_path=${log}/report`;
  return {
    log,
    env: {
      ...process.env,
      LD_PRELOAD: pathOf(kind === 'thread' ? 'libtsan.so' : 'libasan.so'),
      // A finding ends its process by a signal, which no test takes for success. UndefinedBehaviorSanitizer, beside the
      // other one, says what it has found on the standard error stream whatever its options are; its signal is then
      // reported as well. Leaks are found when a process ends, and told from V8's own by their stacks: no exit code.
      ASAN_OPTIONS:
        `${shared}:abort_on_error=1:exitcode=0:handle_segv=2:handle_abort=2:handle_sigbus=2` +
        ':detect_stack_use_after_return=1:allocator_may_return_null=1',
      LSAN_OPTIONS: `suppressions=${join(supplement, 'leaks.txt')}:print_suppressions=0`,
      // Its path is the other one's as well: an empty one would send all reports to the standard error stream.
      UBSAN_OPTIONS: `${shared}:abort_on_error=1:print_stacktrace=1`,
      // Node's own threads agree by atomics that it does not see. What only Node does is left out here, and again by
      // the stacks of what is reported.
      TSAN_OPTIONS: `${shared}:exitcode=0:ignore_noninstrumented_modules=1`,
      ONESIDED_SANITIZED_ADDON: join(out, kind, 'Release', 'onesided.node'),
      NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --require=${join(supplement, 'swap.cjs')}`.trim(),
      ONESIDED_SANITIZED_LOADED: `${log}.loaded`,
    },
  };
}

function pathOf(library) {
  const { stdout } = spawnSync('gcc', [`-print-file-name=${library}`], { encoding: 'utf8' });
  const path = stdout?.trim();
  if (!path?.startsWith('/') || !existsSync(path)) stop(`${library} is not installed; it comes with Debian's g++`);
  return path;
}

/**
 * What was reported in this folder. Leaks and races count if the addon is in one of their stacks, everything else in
 * any case.
 */
function findings(log) {
  const found = [];
  let foreign = 0;
  for (const file of readdirSync(log)) {
    // Memory that there is not, as some tests ask for, is an exception in JavaScript. And it cannot look for leaks in a
    // PID namespace.
    const text = readFileSync(join(log, file), 'utf8')
      .replaceAll(/^.*WARNING: AddressSanitizer failed to allocate.*\n/gm, '')
      .replaceAll(/^.*LeakSanitizer (has encountered a fatal error|does not work under).*\n/gm, '')
      .replaceAll(/^.*HINT: For debugging, try setting environment variable LSAN_OPTIONS.*\n/gm, '');
    const [pattern, separator] = text.includes('WARNING: ThreadSanitizer')
      ? [/WARNING: ThreadSanitizer/, /^={18}$/m]
      : [/^(Direct|Indirect) leak of/m, '\n\n'];
    if (!pattern.test(text)) {
      if (text.trim() !== '') found.push({ file, text });
      continue;
    }
    for (const record of text.split(separator)) {
      // Beside leaks there may be something worse.
      if (/ERROR: AddressSanitizer|runtime error/.test(record)) found.push({ file, text: record });
      else if (!pattern.test(record)) continue;
      else if (OURS.test(record)) found.push({ file, text: record });
      else foreign++;
    }
  }
  return { found, foreign };
}

function runOnLibfabric(kind) {
  const library = process.env['ONESIDED_LIBFABRIC'] ?? 'libfabric.so.1';
  const there = existsSync(library) || spawnSync('ldconfig', ['-p'], { encoding: 'utf8' }).stdout?.includes(library);
  if (!there) return console.log(`libfabric with -fsanitize=${kind}: left out, there is no ${library}`);
  const config = ['--config', 'test/rdma/tcp.config.mjs'];
  runTests(kind, [...config, ...(chosen.length > 0 ? chosen : TESTS.libfabric)], 'libfabric');
}

function runTests(kind, tests, of = 'tests') {
  const start = Date.now();
  const name = `${of}-${kind}`;
  const { log, env } = environment(kind, name);
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const { status } = spawnSync(process.execPath, [vitest, 'run', '--testTimeout', '240000', ...tests], {
    cwd: root,
    env,
    stdio: 'inherit',
  });
  const { found, foreign } = findings(log);
  // One line for each process that has loaded it. Otherwise the tests were of another addon.
  const loaded = existsSync(`${log}.loaded`) ? readFileSync(`${log}.loaded`, 'utf8').trim().split('\n').length : 0;
  if (loaded === 0) found.push({ file: name, text: 'no process has loaded the addon that was built for it' });
  const what = `${of} with -fsanitize=${kind} in ${loaded} processes, ${seconds(start)} s`;
  if (foreign > 0) console.log(`(${foreign} reports without the addon in their stacks are Node's)`);
  verdict(what, status === 0 && found.length === 0, found);
}

/** Of RDMA: a libibverbs of our own is found before the one that is installed. */
function hostileCalls(kind, name) {
  const start = Date.now();
  const { log, env } = environment(kind, `${name}-${kind}`);
  const types = join(root, 'test', 'support', 'types.mjs');
  const program = join(root, 'test', 'native', 'programs', `${name}.ts`);
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    ['--no-warnings', '--expose-gc', '--import', types, program],
    { cwd: root, env: { ...env, LD_LIBRARY_PATH: fakeVerbs(kind) }, encoding: 'utf8' },
  );
  const { found } = findings(log);
  const good = status === 0 && found.length === 0 && stdout.includes('ended well');
  verdict(`hostile calls, ${name} (${kind}), ${seconds(start)} s`, good, [
    { file: `ended with ${status ?? signal}`, text: `${stdout}${stderr}` },
    ...found,
  ]);
}

/** The folder of the libibverbs that is only bookkeeping. */
function fakeVerbs(kind) {
  const folder = join(out, kind, 'Release');
  if (!existsSync(join(folder, 'libibverbs.so.1')))
    stop('infiniband/verbs.h is not installed (apt-get install libibverbs-dev)');
  return folder;
}

function tryFault(kind, fault, expected) {
  const { log, env } = environment(kind, `fault-${kind}-${fault}`);
  const addon = join(out, kind, 'Release', 'faults.node');
  const program = `require(${JSON.stringify(addon)}).${fault}(new Uint8Array(64))`;
  const { status, signal, stderr } = spawnSync(process.execPath, ['-e', program], { env, encoding: 'utf8' });
  const { found } = findings(log);
  const seen = found.map(({ text }) => text).join('\n');
  const said = readdirSync(log).map((file) => readFileSync(join(log, file), 'utf8'));
  const good =
    expected === undefined
      ? found.length === 0 && status === 0
      : found.length > 0 && expected.test([...said, stderr].join('\n'));
  verdict(`fault "${fault}" (${kind}): ${expected === undefined ? 'no report' : 'reported'}`, good, [
    { file: `ended with ${status ?? signal}`, text: `${stderr}${seen}` },
  ]);
}

function stress(name, fault) {
  const start = Date.now();
  const { log, env } = environment('thread', `stress-${name}${fault ? '-fault' : ''}`);
  const program = join(out, 'thread', 'test', 'stress');
  const library = join(out, 'thread', 'Release', `stress-${name}.so`);
  const { status, signal, stdout, stderr } = spawnSync(program, fault ? [library, '--fault'] : [library], {
    // The program has the runtime itself.
    env: {
      ...env,
      LD_PRELOAD: '',
      NODE_OPTIONS: '',
      LD_LIBRARY_PATH: ON_VERBS.includes(name) ? fakeVerbs('thread') : '',
    },
    encoding: 'utf8',
    timeout: 240_000,
  });
  const { found } = findings(log);
  if (fault) {
    const seen = found.some(({ text }) => text.includes('ThreadSanitizer: data race'));
    verdict(`stress ${name} without its synchronization: reported, ${seconds(start)} s`, seen, found);
  } else {
    const text = `exit code ${status ?? signal}\n${stdout}${stderr}`;
    verdict(`stress ${name}, ${seconds(start)} s`, status === 0 && found.length === 0, [
      ...found,
      { file: name, text },
    ]);
  }
}

function verdict(what, good, details) {
  console.log(`${good ? 'ok      ' : 'FAILED  '} ${what}`);
  if (good) return;
  failed++;
  for (const { file, text } of details.slice(0, 5)) console.log(`--- ${file}\n${text.slice(0, 6000)}`);
  if (details.length > 5) console.log(`--- and ${details.length - 5} more, in ${relative(root, reports)}`);
  writeFileSync(join(reports, 'failed.txt'), `${what}\n`, { flag: 'a' });
}

function seconds(since) {
  return ((Date.now() - since) / 1000).toFixed(1);
}

function stop(why) {
  console.error(`test:sanitize: ${why}`);
  process.exit(1);
}
