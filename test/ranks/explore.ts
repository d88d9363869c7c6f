/**
 * The schedule explorer: puts the requirements of the conformance suite, and those of every scheme (support/schemes.ts), on trial on a modelled fabric, under one schedule for each seed.
 *
 *     npm run explore -- --seeds=1000 [--first=0] [--chapter=semantics] [--scheme=NAME] [--only=TEXT] [--size=3] [--fabric=infinihost-64]
 *
 * Chapters are those of the suite, and `fences` and `locks`; `--scheme` is one of those schemes, with its variants (`hybrid`) or one of them (`'hybrid network threshold:2'`). Without `--size` and `--fabric` the requirements are tried on 3 ranks of `infinihost-64`, schemes on 2 to 7 ranks of several fabrics, by the seed.
 *
 * What fails is printed with the command that repeats it. Exit code 1 if something has, or nothing was tried.
 */
import { parseArgs } from 'node:util';
import { inRange, oneOf, orExplain, wholeNumber } from '../../bench/options.ts';
import { Progress } from '../../bench/progress.ts';
import { chapters } from './conformance/chapters.ts';
import { isNotOnDevices, tryUnder } from './support/explorer.ts';
import { isOfScheme, schemeNames, schemes } from './support/schemes.ts';

const CHAPTERS = { ...chapters, ...schemes };

const { seeds, first, chapter, scheme, only, givenSize, givenFabric } = orExplain(() => {
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
  const givenSize = values.size === undefined ? undefined : wholeNumber(values.size);
  if (givenSize !== undefined) inRange('--size', givenSize, 1, 1024);
  const { chapter, scheme, only, fabric: givenFabric } = values;
  return { seeds, first, givenSize, chapter, scheme, only, givenFabric };
});

const sizeOf = (name: string, seed: number): number => givenSize ?? (name in schemes ? 2 + (seed % 6) : 3);
/** Ranks on nodes of their own, all on one node, and some on each. */
const FABRICS = ['infinihost-64', 'connectx-16-cores', 'connectx-16-cores/2', 'connectx-16-cores/3'];
const fabricOf = (name: string, seed: number): string =>
  givenFabric ?? (name in schemes ? FABRICS[Math.floor(seed / 4) % FABRICS.length] : FABRICS[0]);
const chosen = Object.entries(CHAPTERS)
  .filter(([name]) => chapter === undefined || name === chapter)
  .flatMap(([name, requirements]) => requirements.map((requirement) => ({ name, requirement })))
  .filter(({ requirement }) => requirement.run !== undefined)
  .filter(({ name, requirement }) => scheme === undefined || (name in schemes && isOfScheme(requirement, scheme)))
  .filter(({ requirement }) => only === undefined || requirement.says.includes(only));

const unavailable = new Set<string>();
const progress = new Progress('schedules', seeds, process.stdout.isTTY === true);
let schedules = 0;
let failures = 0;
for (let seed = first; seed < first + seeds; seed++) {
  for (const { name, requirement } of chosen) {
    const size = sizeOf(name, seed);
    const fabric = fabricOf(name, seed);
    if (unavailable.has(requirement.says) || requirement.from > size) continue;
    const error = await tryUnder(requirement, { fabric, size, seed });
    schedules++;
    if (error === undefined) continue;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    if (isNotOnDevices(error)) {
      unavailable.add(requirement.says);
      continue;
    }
    failures++;
    console.log(
      `MPI 4.1, ${requirement.section}: ${requirement.says}\n${text}\nto repeat it: npm run explore -- --seeds=1 --first=${seed} --chapter=${name} --size=${size} --fabric=${fabric} '--only=${requirement.says}'\n`,
    );
  }
  progress.update(seed - first + 1);
}
progress.stop();
console.log(JSON.stringify({ schedules, failures, requirements: chosen.length, unavailable: unavailable.size }));
if (schedules === 0) console.error('no requirement is like that');
if (failures > 0 || schedules === 0) process.exitCode = 1;
