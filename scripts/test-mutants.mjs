/**
 * `npm run test:mutants`: makes each fault of test/mutants/mutants.mjs in a copy of the project, and tells which test
 * finds it: a requirement of MPI's chapter, a case of test/ranks/window-*.ts, or a schedule of the explorer on modelled
 * fabrics, where requests take their time. Fails if one is not found by any of them.
 *
 *     node scripts/test-mutants.mjs [--only WORD] [--by conformance|windows|schedules]
 *
 * With --only, the faults that are described with the word; with --by, one of these kinds of tests alone.
 */
import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MUTANTS } from '../test/mutants/mutants.mjs';
import { orExplain } from './explain.mjs';

const { only, by } = orExplain(() => {
  const { values } = parseArgs({ options: { only: { type: 'string', default: '' }, by: { type: 'string' } } });
  if (values.by !== undefined && !['conformance', 'windows', 'schedules'].includes(values.by))
    throw new Error(`--by must be conformance, windows or schedules, not ${values.by}`);
  return values;
});
const chosen = MUTANTS.filter(([what]) => what.includes(only));
if (chosen.length === 0) throw new Error(`no fault is described with “${only}”`);

/** Seconds for a job: a fault may be that ranks wait for ever. */
const TIMEOUT = 150;
const REQUESTS = { ONESIDED_DEBUG: 'requests' };
const CHAPTERS = ['synchronization', 'communication', 'semantics', 'errors', 'initialization', 'memory-model'];
/** Jobs of three processes: a program, its arguments, its environment. The first that finds the fault is enough. */
const JOBS = {
  conformance: [{}, REQUESTS].flatMap((env) =>
    CHAPTERS.map((chapter) => ['conformance', [`--chapter=${chapter}`], env]),
  ),
  windows: [
    ...['epochs', 'transfer', 'pscw', 'requests', 'shared', 'dynamic', 'schemes', 'arguments', 'fast-path'].map(
      (name) => [`window-${name}`, [], {}],
    ),
    ...[
      ['window-by-requests', {}],
      ['window-pscw', { fence: ['remote-notify'] }],
      ['window-requests', { but: { fence: ['immediate'] } }],
      ['window-transfer', { flavor: ['allocate'], fence: ['remote-notify'] }],
    ].map(([program, cases]) => [program, [`--cases=${JSON.stringify(cases)}`], REQUESTS]),
  ],
  schedules: ['fences', 'synchronization', 'communication', 'locks', 'schedules', 'semantics'].map((chapter) => [
    'explore',
    [`--chapter=${chapter}`, '--first=16', '--seeds=8'],
    {},
  ]),
};
const kinds = by === undefined ? Object.keys(JOBS) : [by];

const root = fileURLToPath(new URL('..', import.meta.url));
const copy = mkdtempSync(join(tmpdir(), 'onesided-mutants-'));
process.on('exit', () => rmSync(copy, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
for (const path of ['package.json', 'bin', 'src', 'scripts', 'fabrics', 'build/programs', 'build/native', 'dist'])
  if (existsSync(join(root, path))) cpSync(join(root, path), join(copy, path), { recursive: true });
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

for (const [what, file, piece] of chosen) {
  if (readFileSync(join(copy, file), 'utf8').split(piece).length !== 2)
    throw new Error(`“${what}” (test/mutants/mutants.mjs): ${file} does not have this just once: ${piece}`);
}

/** What fails without a fault, by its job: what devices do not offer. */
const usual = new Map();
await build();
for (const kind of kinds) {
  for (const job of JOBS[kind]) {
    const found = await run(job);
    if (found.some(({ ends }) => ends)) throw new Error(`without a fault, ${job[0]}: ${found[0].says}`);
    usual.set(job, new Set(found.map(({ says }) => says)));
  }
}

let survivors = 0;
for (const [what, file, piece, replacement] of chosen) {
  const path = join(copy, file);
  const text = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    text.replace(piece, () => replacement),
  );
  await build();
  const finders = [];
  for (const kind of kinds) finders.push([kind, await firstOf(JOBS[kind])]);
  if (finders.every(([, finder]) => finder === undefined)) survivors++;
  writeFileSync(path, text);
  console.log(`${what} (${file})\n${finders.map(([kind, finder]) => `  ${kind}: ${finder ?? 'no'}\n`).join('')}`);
}
console.log(
  `${chosen.length} faults, ${survivors === 0 ? 'all found' : `${survivors} not found`} by ${kinds.join(', ')}`,
);
process.exitCode = survivors === 0 ? 0 : 1;

async function firstOf(jobs) {
  for (const job of jobs) {
    const [found] = await run(job, usual.get(job));
    if (found !== undefined) return `${job[2] === REQUESTS ? 'by requests, ' : ''}${job[0]}: ${found.says}`;
  }
  return undefined;
}

/**
 * What has failed in a job: of a chapter each requirement, of a program the case that has ended it.
 * @param usual what is no fault; if given, the first other failure ends the job
 */
async function run([program, args, env], usual) {
  const results = join(copy, 'results');
  for (const name of readdirSync(copy)) if (name.startsWith('results.')) rmSync(join(copy, name));
  const compiled = `build/programs/test/ranks/${program}.js`;
  const launch = ['dist/cli/main.js', 'run', '-n', '3', '--timeout', String(TIMEOUT), compiled, '--'];
  const more = ['--seed=1', ...(program === 'conformance' ? [`--results=${results}`] : [])];
  const command = program === 'explore' ? [compiled, ...args] : [...launch, ...args, ...more];
  const failed = () =>
    readdirSync(copy)
      .filter((name) => name.startsWith('results.'))
      .flatMap((name) => readFileSync(join(copy, name), 'utf8').split('\n'))
      .filter((line) => line.endsWith('}'))
      .map((line) => JSON.parse(line))
      .filter(({ error, says }) => error !== undefined && usual?.has(says) !== true);
  const { code, output } = await start(command, env, () => usual !== undefined && failed().length > 0);
  if (code === 0 || failed().length > 0) return failed();
  const says =
    /Error: case "(.*)" failed on rank|^MPI 4\.1, (.*)$/m.exec(output)?.slice(1).find(Boolean) ??
    output.trim().split('\n').at(-1);
  return [{ says: says ?? `exit code ${code}`, ends: true }];
}

async function build() {
  const { code, output } = await start(['scripts/build.mjs', '--bundles']);
  if (code !== 0) throw new Error(output);
}

/** @param isEnough whether the process may be ended */
function start(command, env = {}, isEnough = () => false) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, command, {
      cwd: copy,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const looks = setInterval(() => isEnough() && child.kill(), 500);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearInterval(looks);
      resolve({ code: code ?? signal, output });
    });
  });
}
