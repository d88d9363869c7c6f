/**
 * `npm run figures [-- --only D6.6,D6.7] [--real] [--sensitivity [--resume]] [--redraw] [--json FILE] [--docs FOLDER]`:
 * measures the papers' claims on modelled fabrics, draws a picture of each, and says whether it holds. `--sensitivity`:
 * sensitivity.ts. `--redraw`: writes page and pictures again from the numbers that the folder has, and measures
 * nothing.
 *
 * It writes docs/results.md, the pictures, and claims.json; with `--only`, the rows and pictures of those figures, and
 * all others stay as they are. `--json` gets what was measured. The same numbers come out on every machine. With
 * `--real` rows are measured on real ranks as well, where two cores are enough (real.ts), and the page of machines with
 * as many cores is written, docs/results-real-2-cores.md (with `--only`, these rows of it): those numbers are of this
 * machine, and of what else it does. Exit code 0, also where claims do not hold: that is a result.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { orExplain } from '../options.ts';
import { ROOT } from '../programs.ts';
import { Progress } from '../progress.ts';
import { FIGURES } from './all.ts';
import type { Chart, Figure, Outcome } from './figure.ts';
import { measureAll } from './measure.ts';
import type { RealRow } from './on-ranks.ts';
import { svgOf } from './plot.ts';
import { onRealRanks } from './real.ts';
import {
  describeSensitivity,
  measureSensitivities,
  readSensitivities,
  type Sensitivity,
  sensitivityOf,
  shortSensitivity,
} from './sensitivity.ts';

/** A row of claims.json. */
interface Claim {
  readonly id: string;
  readonly claim: string;
  readonly source: string;
  readonly measured: string;
  readonly expected: string;
  readonly holds: boolean;
  readonly note: string;
  /** Where it was measured with other numbers, too. */
  readonly sensitivity?: Sensitivity;
  /** On real ranks, with `--real`. */
  readonly real?: RealRow;
}

const { only, real, sensitivity, resume, redraw, json, docs } = orExplain(() => {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      real: { type: 'boolean', default: false },
      sensitivity: { type: 'boolean', default: false },
      resume: { type: 'boolean', default: false },
      redraw: { type: 'boolean', default: false },
      json: { type: 'string' },
      docs: { type: 'string', default: join(ROOT, 'docs') },
    },
  });
  const only = values.only?.split(',');
  const unknown = only?.find((asked) => !FIGURES.some(({ id }) => id === asked));
  if (unknown !== undefined) {
    throw new RangeError(`--only must name some of ${FIGURES.map(({ id }) => id).join(', ')}, not '${unknown}'`);
  }
  return { ...values, only };
});

const chosen = FIGURES.filter(({ id, long }) => only?.includes(id) ?? (redraw || long === undefined));
const pictures = join(docs, 'figures');
mkdirSync(pictures, { recursive: true });
const progress = new Progress('figures', chosen.length, true);
const found: { readonly figure: Figure; readonly outcome: Outcome; readonly real: RealRow | undefined }[] = [];
const outcomes = await outcomesOf();
progress.stop();
const sensitivities = readSensitivities(docs);
for (const [i, figure] of chosen.entries()) {
  const outcome = outcomes[i];
  // One after the other: they use all cores.
  found.push({ figure, outcome, real: real ? await onRealRanks(figure.id) : undefined });
  draw(figure, outcome);
  writeFileSync(join(pictures, `${figure.id}.json`), `${JSON.stringify(outcome.chart, null, 1)}\n`);
}
found.sort((a, b) => placeOf(a.figure.id) - placeOf(b.figure.id));

const claims: Claim[] = found.map(({ figure: { id, claim, source, expected }, outcome, real }) => ({
  id,
  claim,
  source,
  measured: outcome.measured,
  expected,
  holds: outcome.holds,
  note: outcome.note ?? '',
  ...withSensitivity(sensitivityOf(sensitivities, id, outcome)),
  ...(real === undefined ? {} : { real }),
}));
const everywhere = [...kept(), ...claims.map(({ real: _, ...claim }) => claim)].sort(
  (a, b) => placeOf(a.id) - placeOf(b.id),
);
if (real) writeReal();
writeFileSync(join(docs, 'results.md'), page());
writeFileSync(join(docs, 'claims.json'), `${JSON.stringify(everywhere, null, 1)}\n`);
if (json !== undefined) writeFileSync(json, `${JSON.stringify(claims, null, 1)}\n`);
for (const { id, holds, measured, real } of claims)
  console.log(
    `${id}: ${verdict(holds)}. ` +
      `${measured}${real === undefined ? '' : `. On real ranks: ${verdict(real.holds)}. ${real.measured}`}`,
  );

/** The rows of figures that were not measured now, as they were written before. */
function kept(): Claim[] {
  const file = join(docs, 'claims.json');
  if (!existsSync(file)) return [];
  const before = JSON.parse(readFileSync(file, 'utf8')) as Claim[];
  const left = FIGURES.filter((figure) => !chosen.includes(figure)).map(({ id }) => id);
  return before.filter(({ id }) => left.includes(id));
}

async function outcomesOf(): Promise<readonly Outcome[]> {
  if (redraw) return measuredBefore();
  if (!sensitivity) return measureAll(chosen, (done) => progress.update(done));
  const options = { resume, width: availableParallelism() };
  return measureSensitivities(chosen, docs, options, (all) => new Progress('measured again', all, true));
}

/** What was measured before, as the folder has it. @throws if it was of other claims, or with other criteria */
function measuredBefore(): readonly Outcome[] {
  const known = JSON.parse(readFileSync(join(docs, 'claims.json'), 'utf8')) as readonly Claim[];
  return chosen.map(({ id, claim, expected }) => {
    const before = known.find((one) => one.id === id);
    const file = join(pictures, `${id}.json`);
    if (before?.claim !== claim || before.expected !== expected || !existsSync(file)) {
      throw new RangeError(`--redraw: ${id} was not measured as it is now; run npm run figures without --redraw`);
    }
    const { measured, holds, note } = before;
    const chart = JSON.parse(readFileSync(file, 'utf8')) as Chart;
    return { chart, measured, holds, ...(note === '' ? {} : { note }) };
  });
}

function draw({ id, claim, source, caption }: Figure, { chart, holds }: Pick<Outcome, 'chart' | 'holds'>): void {
  const svg = svgOf({ id, claim, holds, caption: `${source}: ${caption}` }, chart);
  writeFileSync(join(pictures, `${id}.svg`), `${svg}\n`);
}

function withSensitivity(sensitivity: Sensitivity | undefined): Pick<Claim, 'sensitivity'> {
  return sensitivity === undefined ? {} : { sensitivity };
}

/** The dissertation's by chapter, then those of other papers, by letter; our own last. */
function placeOf(id: string): number {
  const [, paper, chapter, number] = /^([A-Z])(?:(\d*)\.)?(\d+)$/.exec(id)!;
  const place = paper === 'D' ? Number(chapter) : paper === 'O' ? 200 : 100 + paper.charCodeAt(0) - 65;
  return 100 * place + Number(number);
}

function verdict(holds: boolean): string {
  return holds ? 'holds' : 'does not hold';
}

function page(): string {
  const rows = everywhere.map(
    ({ id, claim, holds, sensitivity }) =>
      `| [${id}](#${id.toLowerCase().replace('.', '')}) | ${claim} | ${verdict(holds)} | ` +
      `${shortSensitivity(sensitivity)} |`,
  );
  const parts = everywhere.map(({ id, claim, source, expected, measured, holds, note, sensitivity }) => {
    const { caption, schemes } = FIGURES.find((figure) => figure.id === id)!;
    return [
      `## ${id}`,
      `${source}: ${claim}.`,
      `![${caption}](figures/${id}.svg)`,
      caption,
      `- Expected: ${expected}.`,
      `- Measured: ${measured}.`,
      `- The claim **${verdict(holds)}**.${note === '' ? '' : ` Note: ${note}.`}`,
      ...said(sensitivity),
      `- [Data](figures/${id}.json); schemes and programs: ` +
        `${schemes.map((file) => `[${file}](../${file})`).join(', ')}.`,
    ]
      .join('\n\n')
      .replaceAll('.\n\n- ', '.\n- ');
  });
  return `# Results

This page compares claims of the papers with measurements on [modelled
fabrics](guide/fabrics.md). All figures use one set of numbers. \`npm run figures\` writes this page in about \
eight minutes
on two cores: do not edit it. The measurements are the same on every machine. Some rows are also measured on real
ranks${pagesOfReal()}. D are the dissertation's claims, by chapter; B those of the report on BSP-IB, M those of the
paper on BSP2, N those of the report on barriers by the adapter, T those of the paper on BSP over TCP/IP; O is our own.
The last column says which numbers of a fabric change the verdict at −30 % or +30 %, of those that \
[no source gives](guide/fabrics.md#fabrics)
and the figure uses (\`npm run figures -- --sensitivity\`).

| | claim | result | with other numbers |
| --- | --- | --- | --- |
${rows.join('\n')}

${parts.join('\n\n')}
`;
}

function said(sensitivity: Sensitivity | undefined): readonly string[] {
  return sensitivity === undefined ? [] : [`- Other numbers: ${describeSensitivity(sensitivity)}.`];
}

/** Writes all rows that were measured on real ranks; of some of them, those into the page of the same machine. */
function writeReal(): void {
  const file = join(docs, `results-real-${availableParallelism()}-cores.md`);
  const rows = new Map(
    claims.flatMap(({ id, real }) =>
      real === undefined
        ? []
        : [
            [
              id,
              `| [${id}](results.md#${id.toLowerCase().replace('.', '')}) ` +
                `| ${real.measured} | ${real.expected} | ` +
                `${verdict(real.holds)}${real.holds || real.why === undefined ? '' : `: ${real.why}`} |`,
            ],
          ],
    ),
  );
  const before = headOfReal();
  if (only !== undefined) {
    const page = existsSync(file) ? readFileSync(file, 'utf8') : '';
    if (!page.startsWith(before)) {
      console.error(`${file} is of another machine: its rows are written together, without --only`);
      return;
    }
    for (const [row, id] of page.matchAll(/^\| \[([^\]]+)\].*$/gm)) if (!rows.has(id)) rows.set(id, row);
  }
  const sorted = [...rows].sort(([a], [b]) => placeOf(a) - placeOf(b)).map(([, row]) => row);
  writeFileSync(file, `${before}${sorted.join('\n')}\n`);
}

/** Links to the pages of real ranks that there are, one a number of cores. */
function pagesOfReal(): string {
  const cores = readdirSync(docs).flatMap((file) => /^results-real-(\d+)-cores\.md$/.exec(file)?.[1] ?? []);
  const links = cores.map(Number).sort((a, b) => a - b);
  if (links.length === 0) return '';
  return `: on ${links.map((one) => `[${one} cores](results-real-${one}-cores.md)`).join(', on ')}`;
}

function headOfReal(): string {
  const [{ model }] = cpus();
  return `# Results on real ranks

This page shows rows of the [results](results.md), measured with the same programs on processes of one machine:
${availableParallelism()} cores, ${model}, Node ${process.versions.node}. \`npm run figures -- --real\` writes \
this page: do not edit it.

The ranks communicate through an emulated network in shared memory. The schemes take the same steps as on a fabric, so
their counts and their order can be compared. The rows do not show latencies between nodes, or more ranks than cores.

| claim | measured | expected | on this machine, the claim |
| --- | --- | --- | --- |
`;
}
