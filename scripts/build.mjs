/**
 * Builds dist/: `node scripts/build.mjs`; with `--bundles`, what runs and no declarations.
 *
 * The declarations are a file for each module, as tsc writes them. The programs are three bundles, none of which is
 * loaded where another one is: the library, the `onesided` command, and the thread that keeps the control memory of
 * jobs on several hosts. So a rank reads one file, and not 150: docs/decisions/028-one-file-for-a-rank.md. What did not
 * change is left alone, since ranks may be about to read it.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

/**
 * Of each bundle, its modules that others name by their path, and those which come, with all that they import, into the
 * one file that the rest of it shares. src/place.ts knows the names of these files.
 */
const BUNDLES = [
  {
    name: 'onesided-library',
    entries: [
      'index',
      'structures/index',
      'service/index',
      'bsp/index',
      'bsp/model/index',
      'verbs/index',
      'fabrics/index',
      'cli/perf-rank',
    ],
    // The tests' threads and ranks start these by their path.
    tested: [
      'native',
      'trace/chrome-trace',
      'trace/clock',
      'trace/recorder',
      'start/distributed',
      'bsp/delivery/delivery-kinds',
      'sync/fence/fence-kinds',
      'sync/lock/lock-kinds',
      'transfer/schedule/schedule-kinds',
      'transfer/layouts/layout-kinds',
      'transfer/served/update-kinds',
    ],
    shared: /^src\/(structures\/|service\/|bsp\/|bsp\/model\/|verbs\/)?index\.ts$/,
  },
  {
    name: 'onesided-command',
    entries: ['cli/main', 'races/live/analyst-worker'],
    tested: ['launcher/threads', 'races/live/race-exchange'],
    shared: /^src\/(cli\/(?!main)|launcher\/)/,
  },
  // Loaded before the program, and by the search for races alone; it has a parser in it.
  {
    name: 'onesided-races',
    entries: ['races/instrument/register', 'races/instrument/hooks'],
    tested: [],
    // Node's thread for hooks loads the second one, and must not register hooks itself.
    shared: /^(src\/(?!races\/instrument\/(register|hooks)\.ts$)|node_modules\/acorn\/)/,
  },
  { name: 'onesided-control', entries: ['start/control-worker'], tested: [], shared: /^never$/ },
];

/** The notice that acorn's license asks for. */
const ACORN = '/*! Contains acorn, MIT License, Copyright (C) 2012-2022 by various contributors (see AUTHORS) */';

const written = new Set(['.tsbuildinfo']);
if (!process.argv.includes('--bundles')) declarations();
for (const bundle of BUNDLES) await write(bundle);
removeStale();

/** Of a module that is no longer there, tsc leaves them. */
function declarations() {
  const args = [join(root, 'scripts/tsc.mjs'), '-p', 'tsconfig.build.json', '--noCheck'];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(1);
  for (const name of readdirSync(join(root, 'src'), { recursive: true }))
    if (name.endsWith('.ts')) written.add(name.replace(/\.ts$/, '.d.ts'));
}

async function write({ name, entries, tested, shared }) {
  const input = Object.fromEntries([...entries, ...tested].map((entry) => [entry, join(root, 'src', `${entry}.ts`)]));
  const build = await rolldown({ input, cwd: root, platform: 'node', tsconfig: false, logLevel: 'warn' });
  const { output } = await build.generate({
    // Of what is bundled, the licenses stay.
    ...(name === 'onesided-races' && { banner: ACORN }),
    format: 'esm',
    comments: false,
    minifyInternalExports: false,
    chunkFileNames: '[name].js',
    // Relative to the clone, which may itself lie below a folder `src`.
    codeSplitting: { groups: [{ name, test: (id) => shared.test(relative(root, id).replaceAll('\\', '/')) }] },
  });
  await build.close();
  for (const { fileName, code } of output) {
    written.add(fileName);
    writeIfOther(join(dist, fileName), code);
  }
}

function writeIfOther(file, text) {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  mkdirSync(dirname(file), { recursive: true });
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, text);
  renameSync(unfinished, file);
}

function removeStale() {
  for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath ?? entry.path, entry.name);
    if (entry.isFile() && !written.has(file.slice(dist.length + 1))) rmSync(file);
  }
}
