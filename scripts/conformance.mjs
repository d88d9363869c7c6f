/**
 * `npm run conformance`: runs the conformance suite and writes docs/conformance.md from its results. With `--page` the
 * page is written from the results of the last run. `npm run build` has to come first.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const results = `${root}build/conformance/`;
const page = `${root}docs/conformance.md`;

const CHAPTERS = ['initialization', 'communication', 'memory-model', 'synchronization', 'errors', 'semantics'];
const KINDS = ['processes', 'threads', 'requests', 'neighbours'];
const TITLES = {
  12.2: 'Initialization',
  '12.2.1': 'Window creation',
  '12.2.2': 'Windows that allocate memory',
  '12.2.3': 'Windows that allocate shared memory',
  '12.2.4': 'Dynamically attached memory',
  '12.2.5': 'Window destruction',
  '12.2.6': 'Window attributes, group, name',
  '12.2.7': 'Window info',
  12.3: 'Communication calls',
  '12.3.1': 'Put',
  '12.3.2': 'Get',
  '12.3.4': 'Accumulate functions',
  '12.3.5': 'Request-based calls',
  12.4: 'Memory model',
  '12.5.1': 'Fence',
  '12.5.2': 'General active target synchronization',
  '12.5.3': 'Lock',
  '12.5.4': 'Flush and sync',
  '12.5.5': 'Assertions',
  '12.5.6': 'Clarifications: kinds of epochs on one window',
  '12.6.1': 'Error handlers',
  '12.6.2': 'Error classes',
  12.7: 'Semantics and correctness',
  '12.7.1': 'Atomicity',
  '12.7.2': 'Ordering',
  '12.7.3': 'Progress',
  '12.7.4': 'Registers and compiler optimizations',
  beyond: 'Beyond the chapter',
};

let status = 0;
if (!process.argv.includes('--page')) {
  rmSync(results, { recursive: true, force: true });
  const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
  const run = spawnSync(process.execPath, [vitest, 'run', 'test/conformance', '--reporter=dot'], {
    cwd: root,
    stdio: 'inherit',
  });
  status = run.status ?? 1;
}
if (!existsSync(results)) throw new Error(`no results in ${results}; run "npm run conformance" without --page`);

const runs = readdirSync(results)
  .filter((name) => /-\d+\.json$/.test(name))
  .map((name) => JSON.parse(readFileSync(results + name, 'utf8')))
  .sort((a, b) => a.size - b.size);
const notApplicable = JSON.parse(readFileSync(`${results}peers.json`, 'utf8'));

/** Where a requirement holds: the numbers of ranks of one kind, with a cross where it does not. */
function marks(chapter, kind, number) {
  const cells = runs
    .filter((run) => run.chapter === chapter && run.kind === kind)
    .map(({ size, rows }) => [size, rows[number].result])
    .filter(([, result]) => result !== undefined);
  return {
    text:
      cells
        .filter(([, result]) => result !== 'unavailable')
        .map(([size, result]) => (result === 'passed' ? `${size}` : `✗${size}`))
        .join(' ') || '–',
    passed: cells.length > 0 && cells.every(([, result]) => result === 'passed' || result === 'unavailable'),
  };
}

const cell = (text) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
/** @type {Map<string, { row: string, tested: boolean, passed: boolean }[]>} */
const sections = new Map();
const peers = new Map();
for (const chapter of CHAPTERS) {
  const [any] = runs.filter((run) => run.chapter === chapter);
  if (any === undefined) throw new Error(`no results of ${chapter}`);
  for (const [number, { section, says, like, tested, why }] of any.rows.entries()) {
    const all = KINDS.map((kind) => marks(chapter, kind, number));
    const file = `[${chapter}](../test/ranks/conformance/${chapter}.ts)`;
    const test = tested ? file : `no test: ${cell(why)}`;
    const row = `| ${cell(says)} | ${test} | ${all.map(({ text }) => text).join(' | ')} |`;
    if (!sections.has(section)) sections.set(section, []);
    sections.get(section).push({ row, tested, passed: all.every(({ passed }) => passed) });
    if (tested) for (const name of like) peers.set(name, [...(peers.get(name) ?? []), section]);
  }
}

const order = (section) => Object.keys(TITLES).sort(byNumber).indexOf(section);
function byNumber(a, b) {
  if (a === 'beyond' || b === 'beyond') return a === b ? 0 : a === 'beyond' ? 1 : -1;
  return a.localeCompare(b, 'en', { numeric: true });
}
const names = [...sections.keys()].sort((a, b) => order(a) - order(b));
for (const name of names) if (TITLES[name] === undefined) throw new Error(`section ${name} has no title`);
const heading = (name) => (name === 'beyond' ? TITLES[name] : `${name} ${TITLES[name]}`);
const anchor = (name) =>
  heading(name)
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

const lines = [
  '# Conformance',
  '',
  '<!-- Written by `npm run conformance`; changes go into test/ranks/conformance. -->',
  '',
  'This page lists the requirements of the one-sided chapter of MPI 4.1 (chapter 12), section by section, in our own words.',
  'For each, it shows where it is tested and with how many ranks it holds. The ranks are processes, worker threads, processes',
  'whose windows work as on a device across a network (by requests), or processes that work as on two such hosts, with two',
  'ranks per host (two hosts). A cross before a number means that the requirement did not hold when this page was written.',
  'A dash in the last columns means that devices do not offer the feature.',
  '',
  '| section | requirements | tested | hold everywhere |',
  '| --- | --- | --- | --- |',
];
const total = [0, 0, 0];
for (const name of names) {
  const rows = sections.get(name);
  const counts = [rows.length, rows.filter(({ tested }) => tested).length, rows.filter(({ passed }) => passed).length];
  for (const [i, count] of counts.entries()) total[i] += count;
  lines.push(`| [${heading(name)}](#${anchor(name)}) | ${counts.join(' | ')} |`);
}
lines.push(`| all | ${total.join(' | ')} |`, '');
for (const name of names) {
  lines.push(`## ${heading(name)}`, '');
  lines.push(
    '| required | test | processes | threads | by requests | two hosts |',
    '| --- | --- | --- | --- | --- | --- |',
  );
  lines.push(...sections.get(name).map(({ row }) => row), '');
}
lines.push(
  '## Programs of other suites',
  '',
  "These programs are MPICH's test/mpi/rma and test/mpi/errors/rma, mpi4py's test_rma.py and test_win.py, and ARMCI-MPI's",
  'tests. For each, the table names the sections whose requirements cover it, or the reason why it does not apply.',
  '',
  '| program | covered in |',
  '| --- | --- |',
);
for (const name of [...peers.keys(), ...Object.keys(notApplicable)].sort()) {
  const where = [...new Set(peers.get(name))].sort((a, b) => order(a) - order(b)).join(', ');
  lines.push(
    `| ${name.replace('-errors/', ' errors: ').replace('/', ': ')} | ${where || `none: ${notApplicable[name]}`} |`,
  );
}
writeFileSync(page, `${lines.join('\n')}\n`);
console.log(`${page}: ${total[0]} requirements, ${total[1]} tested, ${total[2]} hold everywhere`);
process.exitCode = status;
