/**
 * Kills a rank a hundred times, and prints how long the others took to know; then runs random programs with ever new
 * seeds, on ranks of every kind and number, until the time is over or one fails.
 *
 *     npm run test:soak -- --minutes 30 [--seed N] [--kills 100]
 *
 * Prints the seed of each round, and the command that repeats the one that failed. Needs `npm run build`, as the npm
 * script does it.
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { orExplain } from './explain.mjs';

const { minutes, first, kills } = orExplain(() => {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '5' },
      seed: { type: 'string' },
      kills: { type: 'string', default: '100' },
    },
  });
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) throw new Error(`--minutes must be a number above 0, not ${values.minutes}`);
  const first = values.seed === undefined ? randomInt(1_000_000_000) : Number(values.seed);
  if (!Number.isSafeInteger(first)) throw new Error(`--seed must be a whole number, not ${values.seed}`);
  const kills = Number(values.kills);
  if (!(Number.isSafeInteger(kills) && kills >= 0))
    throw new Error(`--kills must be a whole number from 0, not ${values.kills}`);
  return { minutes, first, kills };
});
let seed = first;

const root = fileURLToPath(new URL('..', import.meta.url));
/** Rank programs that draw what they do from `--seed`, and how much of it a round is. */
const PROGRAMS = [
  ['window-random', '--programs=20'],
  ['window-random', '--programs=20'],
  // As on a device; the schemes of fences, locks, updates, schedules and layouts are drawn.
  ['window-random', '--programs=8', '--by-requests'],
  ['window-transfer'],
  ['sync-contention'],
  ['window-datatypes'],
  ['window-float-accumulate'],
  ['window-dynamic'],
  ['window-user-memory'],
  ['structures'],
  // How supersteps are delivered is drawn, too.
  ['bsp', '--programs=80', '--only=random programs leave what a sequential model leaves'],
];
const KINDS = [
  ['processes', 2],
  ['threads', 3],
  ['processes', 4],
  ['processes', 3],
  ['threads', 2],
  ['processes', 7],
  ['threads', 5],
];

const end = Date.now() + minutes * 60_000;
const started = Date.now();
if (kills > 0) {
  const test = ['node_modules/vitest/vitest.mjs', 'run', 'test/robustness/kill.test.ts'];
  const { code, output } = await run(test, {
    ONESIDED_SEED: String(seed),
    ONESIDED_TEST_KILLS: String(kills),
    NO_COLOR: '1',
  });
  if (code !== 0) {
    console.error(
      `${output}\na killed rank was not handled as promised; again:\nONESIDED_SEED=${seed} ` +
        `ONESIDED_TEST_KILLS=${kills} node ${test.join(' ')}`,
    );
    process.exit(1);
  }
  const told = /\d+ survivors knew after .*/.exec(output);
  console.log(
    told === null ? 'no rank was killed: ranks as processes need the addon' : `${kills} ranks killed: ${told[0]}`,
  );
}
let rounds = 0;
while (Date.now() < end) {
  const [program, ...args] = PROGRAMS[rounds % PROGRAMS.length];
  const [kind, size] = KINDS[rounds % KINDS.length];
  const command = [
    ...['dist/cli/main.js', 'run', '-n', String(size), '--ranks', kind, '--timeout', '600'],
    ...[`build/programs/test/ranks/${program}.js`, '--', `--seed=${seed}`, ...args],
  ];
  const debug = args.includes('--by-requests') ? 'requests' : '';
  const { code, output } = await run(command, { ONESIDED_DEBUG: debug });
  if (code !== 0) {
    console.error(
      `${output}\nround ${rounds + 1} failed with exit code ${code}; again:\n` +
        `ONESIDED_DEBUG=${debug} node ${command.map((word) => (word.includes(' ') ? `'${word}'` : word)).join(' ')}`,
    );
    process.exit(1);
  }
  rounds++;
  const elapsed = ((Date.now() - started) / 60_000).toFixed(1);
  const line = `${elapsed} of ${minutes} minutes, ${rounds} rounds passed, seed ${seed} (${program}, ${size} ${kind})`;
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line}`);
  else console.log(line);
  seed++;
}
console.log(`${process.stdout.isTTY ? '\n' : ''}${rounds} rounds passed, none failed`);

function run(args, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code: code ?? signal, output }));
  });
}
