/**
 * Checks that imports only go downwards (docs/architecture.md), that no file of src/ imports itself through others, and
 * that no two of them have the same name. Imports of types count too, except in programs.
 *
 *     node scripts/check-layers.mjs
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const ground = [
  'addon.ts',
  'debug.ts',
  'errors.ts',
  'fifo.ts',
  'intrinsics.ts',
  'memory-model.ts',
  'native.ts',
  'options.ts',
  'cores.ts',
  'place.ts',
  'program-line.ts',
  'version.ts',
];
/** What stands below the job: who waits, and how messages go. */
const below = [...ground, 'datatype', 'verbs', 'wait', 'message'];
/** Below windows: who the ranks are, and what all of them do together. */
const ranks = [...below, 'job', 'collective'];
const transfers = ['transfer/loads', 'transfer/requests', 'transfer/served', 'transfer/layouts', 'transfer/schedule'];

/**
 * Each room of src/, and what it may import besides itself: a folder, or one within it. From the ground up. A file
 * belongs to the innermost of these that it lies in.
 */
const LAYERS = {
  ...Object.fromEntries(ground.map((file) => [file, ground])),
  datatype: ground,
  verbs: ground,
  trace: ground,
  'providers/core': [...ground, 'verbs'],
  'providers/emulator': [...ground, 'verbs', 'providers', 'providers/core'],
  'providers/modelled': [...ground, 'verbs', 'providers/core', 'providers/emulator'],
  'providers/rdma-core': [...ground, 'verbs', 'providers', 'providers/core', 'providers/emulator'],
  'providers/libfabric': [...ground, 'verbs', 'providers', 'providers/emulator', 'providers/rdma-core'],
  providers: [...ground, 'verbs', ...within('providers')],
  wait: [...ground, 'verbs', 'providers/modelled', 'trace'],
  message: [...ground, 'verbs', 'trace'],
  job: [...ground, 'verbs', 'providers/emulator', 'trace', 'wait', 'message'],
  collective: [...below, 'trace', 'job'],
  'start/managers': [...ground, 'job', 'start'],
  start: [...ranks, 'providers', ...within('providers'), 'trace', 'start/managers', 'races', 'races/watch'],
  'transfer/loads': [...ground, 'datatype'],
  'transfer/requests': [...below, 'job', 'transfer/loads'],
  'transfer/served': [...ranks, 'transfer/loads', 'transfer/requests'],
  'transfer/layouts': [...ranks, 'transfer/loads', 'transfer/requests', 'transfer/served'],
  'transfer/schedule': [...ground, 'datatype', 'transfer/requests'],
  'sync/fence': [...ranks, ...transfers],
  'sync/lock': [...ranks, ...transfers],
  'sync/pscw': [...ranks, ...transfers],
  'window/elements': [...ground, 'datatype', 'transfer/loads', 'window/path'],
  'window/attached': [...ranks, ...transfers],
  'window/path': [...ranks, ...transfers, 'sync/lock', 'trace', 'window/attached', 'window/creation', 'window/epochs'],
  'window/epochs': [...ranks, ...transfers, 'sync/lock', 'window/creation', 'window/path'],
  'window/creation': [...ranks, ...transfers, ...within('sync'), 'trace', 'window/attached', 'window/path'],
  'window/calls': [...ranks, ...transfers, ...within('sync'), 'trace', ...within('window')],
  races: [...ground, 'trace'],
  'races/instrument': [...ground, 'races', 'races/watch'],
  'races/logs': [...ground, 'races'],
  'races/live': [...ground, 'races', 'races/logs'],
  'races/watch': [
    ...ranks,
    'sync/lock',
    'sync/pscw',
    'window/creation',
    'window/epochs',
    'races',
    'races/live',
    'races/logs',
  ],
  structures: [...ranks, 'window/calls', 'window/creation', 'window/epochs', 'window/path'],
  service: [...ground, 'datatype', 'wait', 'start', 'service/map', 'service/window'],
  'service/map': [...ground, 'wait'],
  'service/window': [...ground, 'datatype', 'wait', 'transfer/loads', 'sync/lock', 'window/calls', 'service'],
  'bsp/delivery': [...ranks, 'transfer/requests', 'trace', 'bsp'],
  bsp: [...ranks, 'trace', 'start', 'bsp/delivery', 'bsp/model'],
  'bsp/model': [...ground, 'datatype', 'collective', 'trace', 'bsp', 'bsp/delivery'],
  launcher: [...ground, 'providers/emulator', 'providers', 'job', 'start', 'start/managers', 'trace'],
  'launcher/hosts': [
    ...ground,
    'providers/emulator',
    'providers',
    'job',
    'start',
    'start/managers',
    'trace',
    'races',
    'races/logs',
    'launcher',
  ],
  cli: [
    ...ground,
    'providers',
    ...within('providers'),
    'bsp',
    'bsp/model',
    'launcher',
    'launcher/hosts',
    'races',
    'races/live',
    'races/logs',
    'service',
    'trace',
    'index.ts',
  ],
};
/** What the package exports: may import every layer, and is imported by programs only. */
const ENTRIES = [
  'index.ts',
  'structures/index.ts',
  'service/index.ts',
  'bsp/index.ts',
  'bsp/model/index.ts',
  'verbs/index.ts',
  'fabrics/index.ts',
];
/** Folders that see the package as its users do, by its name; types they may take from anywhere. */
const PROGRAMS = ['bench', 'examples', 'test/ranks'];

/** What programs that do not simulate do not load. */
const SIMULATOR = /^src\/(providers\/modelled\/|(start\/tasks|wait\/virtual-progress|wait\/deadlock)\.ts)/;
const TYPES_ONLY = /\b(import|export) type\b[^;]*;|\btypeof import\([^)]*\)/g;

const wrong = [];
for (const file of sources('src')) {
  if (ENTRIES.includes(file)) continue;
  const room = roomOf(file);
  if (room === undefined) wrong.push(`src/${file} lies in no room of LAYERS`);
  for (const target of imports(join('src', file))) {
    const to = relative('src', target).split(sep).join('/');
    if (to.startsWith('../')) wrong.push(`src/${file} imports ${target}, which is not in src/`);
    else if (roomOf(to) !== room && !(LAYERS[room] ?? []).includes(roomOf(to) ?? to)) {
      const rooms = (LAYERS[room] ?? []).filter((name) => !ground.includes(name));
      wrong.push(`src/${file} imports ${target}: ${room} stands on ${rooms.join(', ') || 'the ground alone'}`);
    }
  }
}
const named = new Map();
for (const file of sources('src')) {
  const name = file.split('/').at(-1);
  if (name !== 'index.ts') named.set(name, [...(named.get(name) ?? []), file]);
}
for (const files of named.values())
  if (files.length > 1) wrong.push(`${files.map((file) => `src/${file}`).join(' and ')} have the same name`);
for (const folder of PROGRAMS) {
  for (const file of sources(folder)) {
    for (const target of imports(join(folder, file), TYPES_ONLY)) {
      if (!/^(src|dist)\b/.test(target)) continue;
      wrong.push(
        `${folder}/${file} imports ${target}: programs import 'onesided', 'onesided/sync', 'onesided/bsp', ` +
          "'onesided/verbs' or 'onesided/fabrics'",
      );
    }
  }
}
const reached = reachedFrom('src/index.ts');
for (const file of reached.filter((file) => SIMULATOR.test(file))) {
  wrong.push(`src/index.ts loads ${file}: the simulator is behind onesided/fabrics`);
}
for (const files of circles())
  wrong.push(`${circleIn(files).join(' imports ')}: a circle; give what they share a file of its own`);
for (const line of wrong) console.error(line);
if (wrong.length > 0) process.exit(1);

/** The rooms of src/ within a folder. */
function within(folder) {
  return readdirSync(join(root, 'src', folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}/${name}`);
}

/** The innermost room that a file of src/ lies in. */
function roomOf(file) {
  for (let folder = file; folder !== '.'; folder = dirname(folder)) if (Object.hasOwn(LAYERS, folder)) return folder;
  return undefined;
}

function sources(folder) {
  const names = readdirSync(join(root, folder), { recursive: true });
  return names.filter((name) => /\.(ts|js|mjs)$/.test(name)).map((name) => name.split(sep).join('/'));
}

/** The files that a file imports by a path, relative to the root. @param except what does not count */
function imports(file, except = /$^/) {
  const text = readFileSync(join(root, file), 'utf8').replace(except, '');
  const paths = text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']*)'/g);
  return [...paths].map(([, path]) => join(dirname(file), path));
}

/** All files that a file loads, itself included; what it imports of types only does not count. */
function reachedFrom(file, found = new Set()) {
  if (found.has(file)) return [];
  found.add(file);
  for (const target of imports(file, TYPES_ONLY)) reachedFrom(target, found);
  return [...found];
}

/** Files of src/ that import each other, directly or through others; each group as large as it can be (Tarjan). */
function circles() {
  const numbers = new Map();
  const lowest = new Map();
  const open = [];
  const found = [];
  const visit = (file) => {
    numbers.set(file, numbers.size);
    lowest.set(file, numbers.get(file));
    open.push(file);
    for (const target of importsInSource(file)) {
      if (!numbers.has(target)) visit(target);
      // What was left already belongs to another group.
      if (open.includes(target)) lowest.set(file, Math.min(lowest.get(file), lowest.get(target)));
    }
    if (lowest.get(file) !== numbers.get(file)) return;
    const group = open.splice(open.indexOf(file));
    if (group.length > 1) found.push(group);
  };
  for (const file of sources('src')) if (!numbers.has(`src/${file}`)) visit(`src/${file}`);
  return found;
}

/** One circle, as short as there is from the first of some files that import each other, back to that file. */
function circleIn([first, ...others]) {
  const ways = [[first]];
  const seen = new Set();
  for (const way of ways) {
    for (const target of importsInSource(way.at(-1))) {
      if (target === first) return [...way, first];
      if (seen.has(target) || !others.includes(target)) continue;
      seen.add(target);
      ways.push([...way, target]);
    }
  }
  return [first, ...others];
}

function importsInSource(file) {
  return imports(file).filter((target) => target.startsWith('src/'));
}
