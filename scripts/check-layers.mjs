/**
 * Checks that imports only go downwards (docs/architecture.md), and that no file of src/ imports itself through others.
 * Imports of types count too, except in programs.
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
  'poison.ts',
  'program-line.ts',
  'version.ts',
];
/** Each folder of src/, and what it may import besides itself. From the ground up. */
const LAYERS = {
  ...Object.fromEntries(ground.map((file) => [file, ground])),
  datatype: ground,
  verbs: ground,
  providers: [...ground, 'verbs'],
  trace: ground,
  comm: [...ground, 'datatype', 'verbs', 'providers', 'trace'],
  transfer: [...ground, 'datatype', 'verbs', 'comm'],
  sync: [...ground, 'datatype', 'verbs', 'comm', 'transfer'],
  window: [...ground, 'datatype', 'verbs', 'comm', 'transfer', 'sync', 'trace'],
  structures: [...ground, 'datatype', 'comm', 'window'],
  bsp: [...ground, 'datatype', 'verbs', 'providers', 'comm', 'transfer', 'trace'],
  launcher: [...ground, 'providers', 'comm', 'trace'],
  cli: [...ground, 'providers', 'bsp', 'launcher', 'trace', 'index.ts'],
};
/** What the package exports: may import every layer, and is imported by programs only. */
const ENTRIES = [
  'index.ts',
  'structures/index.ts',
  'bsp/index.ts',
  'bsp/model/index.ts',
  'verbs/index.ts',
  'fabrics/index.ts',
];
/** Folders that see the package as its users do, by its name; types they may take from anywhere. */
const PROGRAMS = ['bench', 'examples', 'test/ranks'];

/** What programs that do not simulate do not load. */
const SIMULATOR = /^src\/(providers\/modelled\/|comm\/(tasks|virtual-progress|deadlock)\.ts)/;
/** Folders with files that import each other in circles, and how many such files. May only shrink. */
const CIRCLES = { 'providers/emulator': 8, 'providers/modelled': 12, 'providers/rdma-core': 7 };
const TYPES_ONLY = /\b(import|export) type\b[^;]*;|\btypeof import\([^)]*\)/g;

const wrong = [];
for (const file of sources('src')) {
  const [folder] = file.split('/');
  if (ENTRIES.includes(file)) continue;
  for (const target of imports(join('src', file))) {
    const to = relative('src', target).split(sep);
    if (to[0] === '..') wrong.push(`src/${file} imports ${target}, which is not in src/`);
    else if (to[0] !== folder && !(LAYERS[folder] ?? []).includes(to[0])) {
      wrong.push(`src/${file} imports ${target}: ${folder} stands on ${(LAYERS[folder] ?? ['nothing']).join(', ')}`);
    }
  }
}
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
const inCircles = Object.fromEntries(Object.keys(CIRCLES).map((folder) => [folder, []]));
for (const files of circles()) {
  const folder = Object.keys(CIRCLES).find((folder) => files.every((file) => dirname(file) === `src/${folder}`));
  if (folder !== undefined) inCircles[folder].push(...files);
  else wrong.push(`${circleIn(files).join(' imports ')}: a circle; give what they share a file of its own`);
}
for (const [folder, files] of Object.entries(inCircles)) {
  const known = CIRCLES[folder];
  const found = `src/${folder}: ${files.length} files import each other in circles`;
  if (files.length < known) {
    wrong.push(`${found}; say so in CIRCLES instead of ${known}`);
  } else if (files.length > known) {
    wrong.push(`${found}, instead of ${known}: ${files.sort().join(', ')}`);
  }
}
for (const line of wrong) console.error(line);
if (wrong.length > 0) process.exit(1);

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
