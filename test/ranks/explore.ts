/**
 * The schedule explorer: puts the requirements of the conformance suite, and those of every scheme
 * (support/schemes.ts), on trial on a modelled fabric, under one schedule for each seed.
 *
 *     npm run explore -- --seeds=1000 [--first=0] [--chapter=semantics] [--scheme=NAME] [--only=TEXT] [--size=3]
 *     [--fabric=infinihost-64]
 *
 * Chapters are those of the suite, `bsp`, `barriers`, `fences`, `locks`, `schedules` and `layouts`; `--scheme` is one
 * of the schemes of the last five, with its variants (`hybrid`) or one of them (`'hybrid network threshold:2'`).
 * Without `--size` and `--fabric` they are tried on 3 ranks of `infinihost-64`, schemes and BSP on 2 to 7 ranks of
 * several fabrics, by the seed.
 * `--chapter=bsp --only=random` are random BSP programs, two for each seed, by two ways of delivery.
 *
 * Schedules are tried on all cores, each by one. What fails is printed with the command that repeats it. Exit code 1 if
 * something has, or nothing was tried.
 */
import { parseArgs } from 'node:util';
import { inRange, oneOf, orExplain, wholeNumber } from '../../bench/options.ts';
import { Progress } from '../../bench/progress.ts';
import { onWorkers } from '../../bench/workers.ts';
import { CHAPTERS, type Choice, Exploration, type Found, type Seeds } from './support/exploration.ts';
import { schemeNames } from './support/schemes.ts';

/** Seeds that a worker tries before it says what it has found. */
const LOT = 10;

const { seeds, first, choice } = orExplain(() => {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '100' },
      first: { type: 'string', default: '0' },
      chapter: { type: 'string' },
      scheme: { type: 'string' },
      only: { type: 'string' },
      size: { type: 'string' },
      fabric: { type: 'string' },
    },
  });
  if (values.chapter !== undefined) oneOf('--chapter', values.chapter, Object.keys(CHAPTERS));
  if (values.scheme !== undefined)
    oneOf('--scheme', values.scheme, [...new Set(schemeNames.flatMap((name) => [name.split(' ')[0], name]))]);
  const seeds = wholeNumber(values.seeds);
  inRange('--seeds', seeds, 1, 2 ** 32);
  const first = wholeNumber(values.first);
  inRange('--first', first, 0, 2 ** 52);
  const size = values.size === undefined ? undefined : wholeNumber(values.size);
  if (size !== undefined) inRange('--size', size, 1, 1024);
  const { chapter, scheme, only, fabric } = values;
  const choice: Choice = { chapter, scheme, only, size, fabric };
  return { seeds, first, choice };
});

function* lots(): Generator<Seeds> {
  for (let at = 0; at < seeds; at += LOT) yield { first: first + at, count: Math.min(LOT, seeds - at) };
}

const progress = new Progress('schedules', seeds, true);
const unavailable = new Set<string>();
let [schedules, failures, done] = [0, 0, 0];
await onWorkers<Seeds, Found>(
  new URL('./explore-worker.js', import.meta.url),
  lots(),
  (found) => {
    schedules += found.schedules;
    failures += found.failures.length;
    for (const failure of found.failures) console.log(failure);
    for (const says of found.unavailable) unavailable.add(says);
    done += LOT;
    progress.update(Math.min(done, seeds));
  },
  { data: choice, most: Math.ceil(seeds / LOT) },
);
progress.stop();
const { requirements } = new Exploration(choice);
console.log(JSON.stringify({ schedules, failures, requirements, unavailable: unavailable.size }));
if (schedules === 0) console.error('no requirement is like that');
if (failures > 0 || schedules === 0) process.exitCode = 1;
