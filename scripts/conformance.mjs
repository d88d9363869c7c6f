/**
 * `npm run conformance`: runs the conformance suite and writes docs/conformance.md (MPI's one-sided chapter) and
 * docs/conformance-bsp.md (BSPlib) from its results. With `--page` the pages are written from the results of the last
 * run; with `--bsp`, only BSPlib is run, and its page written. `npm run build` has to come first.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const results = `${root}build/conformance/`;

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

/** BSPlib's classes of primitives, in the order of its table. */
const BSP_TITLES = {
  initialization: 'Initialization: `bsp_init`, `bsp_begin`, `bsp_end`',
  halt: 'Halt: `bsp_abort`',
  enquiry: 'Enquiry: `bsp_nprocs`, `bsp_pid`, `bsp_time`',
  superstep: 'Superstep: `bsp_sync`',
  registration: 'Registration: `bsp_push_reg`, `bsp_pop_reg`',
  put: 'Put: `bsp_put`',
  get: 'Get: `bsp_get`',
  messages: 'Messages: `bsp_set_tagsize`, `bsp_send`, `bsp_qsize`, `bsp_get_tag`, `bsp_move`',
  'high performance': 'High performance: `bsp_hpput`, `bsp_hpget`, `bsp_hpmove`',
  beyond: 'Beyond the definition',
};

const onlyBsp = process.argv.includes('--bsp');
let status = 0;
if (!process.argv.includes('--page')) {
  const stale = existsSync(results) ? readdirSync(results) : [];
  for (const name of stale) if (!onlyBsp || name.startsWith('bsp-')) rmSync(results + name, { recursive: true });
  const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
  const files = ['test/conformance/bsp.test.ts', 'test/conformance/tasks.test.ts', '-t', 'BSPlib'];
  const what = onlyBsp ? files : ['test/conformance'];
  const run = spawnSync(process.execPath, [vitest, 'run', ...what, '--reporter=dot'], { cwd: root, stdio: 'inherit' });
  status = run.status ?? 1;
}
if (!existsSync(results)) throw new Error(`no results in ${results}; run "npm run conformance" without --page`);

const runs = readdirSync(results)
  .filter((name) => /-\d+\.json$/.test(name))
  .map((name) => JSON.parse(readFileSync(results + name, 'utf8')))
  .sort((a, b) => a.size - b.size);

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

/** What the runs say of chapters, by section: rows of tables, and the programs of other suites that stand for them. */
function collect(chapters, kinds, fileOf) {
  /** @type {Map<string, { row: string, tested: boolean, passed: boolean }[]>} */
  const sections = new Map();
  const peers = new Map();
  for (const chapter of chapters) {
    const [any] = runs.filter((run) => run.chapter === chapter);
    if (any === undefined) throw new Error(`no results of ${chapter}`);
    for (const [number, { section, says, like, tested, why }] of any.rows.entries()) {
      const all = kinds.map((kind) => marks(chapter, kind, number));
      const test = tested ? fileOf(chapter, section) : `no test: ${cell(why)}`;
      const row = `| ${cell(says)} | ${test} | ${all.map(({ text }) => text).join(' | ')} |`;
      if (!sections.has(section)) sections.set(section, []);
      sections.get(section).push({ row, tested, passed: all.every(({ passed }) => passed) });
      if (tested) for (const name of like) peers.set(name, [...(peers.get(name) ?? []), section]);
    }
  }
  return { sections, peers };
}

function byNumber(a, b) {
  if (a === 'beyond' || b === 'beyond') return a === b ? 0 : a === 'beyond' ? 1 : -1;
  return a.localeCompare(b, 'en', { numeric: true });
}

const anchor = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

/** A table of sections, and a table for each of them. @param order the names of sections */
function tables(sections, order, heading, columns) {
  const names = [...sections.keys()].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  for (const name of names) if (!order.includes(name)) throw new Error(`section ${name} has no title`);
  const lines = ['| section | requirements | tested | hold everywhere |', '| --- | --- | --- | --- |'];
  const total = [0, 0, 0];
  for (const name of names) {
    const rows = sections.get(name);
    const counts = [
      rows.length,
      rows.filter(({ tested }) => tested).length,
      rows.filter(({ passed }) => passed).length,
    ];
    for (const [i, count] of counts.entries()) total[i] += count;
    lines.push(`| [${heading(name)}](#${anchor(heading(name))}) | ${counts.join(' | ')} |`);
  }
  lines.push(`| all | ${total.join(' | ')} |`, '');
  for (const name of names) {
    lines.push(`## ${heading(name)}`, '');
    lines.push(`| required | test | ${columns.join(' | ')} |`, `| --- | --- |${' --- |'.repeat(columns.length)}`);
    lines.push(...sections.get(name).map(({ row }) => row), '');
  }
  return { lines, total };
}

function write(name, lines, total) {
  const page = `${root}docs/${name}`;
  writeFileSync(page, `${lines.join('\n').trimEnd()}\n`);
  console.log(`${page}: ${total[0]} requirements, ${total[1]} tested, ${total[2]} hold everywhere`);
}

function writeMpi() {
  const notApplicable = JSON.parse(readFileSync(`${results}peers.json`, 'utf8'));
  const { sections, peers } = collect(
    CHAPTERS,
    KINDS,
    (chapter) => `[${chapter}](../test/ranks/conformance/${chapter}.ts)`,
  );
  const order = Object.keys(TITLES).sort(byNumber);
  const heading = (name) => (name === 'beyond' ? TITLES[name] : `${name} ${TITLES[name]}`);
  const { lines, total } = tables(sections, order, heading, ['processes', 'threads', 'by requests', 'two hosts']);
  const page = [
    '# Conformance',
    '',
    '<!-- Written by `npm run conformance`; changes go into test/ranks/conformance. -->',
    '',
    'This page lists the requirements of the one-sided chapter of MPI 4.1 (chapter 12), section by ' +
      'section, in our own words.',
    'For each, it shows where it is tested and with how many ranks it holds. The ranks are processes, ' +
      'worker threads, processes',
    'whose windows work as on a device across a network (by requests), ' +
      'or processes that work as on two such hosts, with two',
    'ranks per host (two hosts). A cross before a number means that the requirement did not hold ' +
      'when this page was written.',
    'A dash in the last columns means that devices do not offer the feature.',
    '',
    ...lines,
    '## Programs of other suites',
    '',
    "These programs are MPICH's test/mpi/rma and test/mpi/errors/rma, mpi4py's test_rma.py and " +
      "test_win.py, and ARMCI-MPI's",
    'tests. For each, the table names the sections whose requirements cover it, or the reason why it does not apply.',
    '',
    '| program | covered in |',
    '| --- | --- |',
  ];
  for (const name of [...peers.keys(), ...Object.keys(notApplicable)].sort()) {
    const where = [...new Set(peers.get(name))].sort((a, b) => order.indexOf(a) - order.indexOf(b)).join(', ');
    page.push(
      `| ${name.replace('-errors/', ' errors: ').replace('/', ': ')} | ${where || `none: ${notApplicable[name]}`} |`,
    );
  }
  write('conformance.md', page, total);
}

const BSP_FILES = ['put', 'get', 'messages', 'high performance', 'beyond'];

function writeBsp() {
  const { sections } = collect(['bsp'], [...KINDS, 'tasks'], (_, section) => {
    const file = BSP_FILES.includes(section) ? 'bsp-transfers' : 'bsp-processes';
    return `[${file}](../test/ranks/conformance/${file}.ts)`;
  });
  const columns = ['processes', 'threads', 'by requests', 'two hosts', 'tasks'];
  const { lines, total } = tables(sections, Object.keys(BSP_TITLES), (name) => BSP_TITLES[name], columns);
  const page = [
    '# Conformance: BSPlib',
    '',
    '<!-- Written by `npm run conformance`; changes go into test/ranks/conformance. -->',
    '',
    'This page lists what the definition of BSPlib (Hill and others, 1998) requires of its twenty ' +
      'primitives, class by class',
    "and in our own words, and what [our names](guide/bsp-names.md) promise beyond it. It is read as MPI's",
    '[page](conformance.md): numbers of ranks on which the requirement holds, a cross where it did ' +
      'not. Each requirement is',
    'tried twice, as the ranks deliver supersteps by themselves, ' +
      'and by messages with plain headers and counts by a tree.',
    'Tasks are ranks on modelled fabrics, under schedules that delay, reorder and lose messages.',
    '',
    ...lines,
  ];
  write('conformance-bsp.md', page, total);
}

if (!onlyBsp) writeMpi();
writeBsp();
process.exitCode = status;
