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
import { basename, join } from 'node:path';
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
import { marksOf, type WhyNot, whyNotOf } from './verdicts.ts';

/** A row of claims.json. */
interface Claim {
  readonly id: string;
  readonly claim: string;
  readonly source: string;
  readonly measured: string;
  readonly expected: string;
  readonly holds: boolean;
  readonly factor?: boolean;
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
  ...(outcome.factor === undefined ? {} : { factor: outcome.factor }),
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
for (const { id, holds, factor, measured, real } of claims)
  console.log(
    `${id}: ${verdict(holds, factor)}. ` +
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
  const kept = (id: string): Outcome | undefined => outcomeBefore(FIGURES.find((figure) => figure.id === id)!);
  const options = { resume, width: availableParallelism(), kept };
  return measureSensitivities(chosen, docs, options, (all) => new Progress('measured again', all, true));
}

/** What was measured before, as the folder has it. @throws if it was of other claims, or with other criteria */
function measuredBefore(): readonly Outcome[] {
  return chosen.map((figure) => {
    const outcome = outcomeBefore(figure);
    if (outcome !== undefined) return outcome;
    throw new RangeError(`--redraw: ${figure.id} was not measured as it is now; run npm run figures without --redraw`);
  });
}

/** Undefined if it was of another claim, or with another criterion. */
function outcomeBefore({ id, claim, expected }: Figure): Outcome | undefined {
  const known = JSON.parse(readFileSync(join(docs, 'claims.json'), 'utf8')) as readonly Claim[];
  const before = known.find((one) => one.id === id);
  const file = join(pictures, `${id}.json`);
  if (before?.claim !== claim || before.expected !== expected || !existsSync(file)) return undefined;
  const { measured, holds, factor, note } = before;
  const chart = JSON.parse(readFileSync(file, 'utf8')) as Chart;
  return {
    ...{ chart, measured, holds },
    ...(factor === undefined ? {} : { factor }),
    ...(note === '' ? {} : { note }),
  };
}

function draw({ id, claim, source, caption }: Figure, { chart, holds, factor = true }: Outcome): void {
  const svg = svgOf({ id, claim, holds, factor, caption: `${source}: ${caption}` }, chart);
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

function verdict(holds: boolean, factor = true): string {
  if (!holds) return 'does not hold';
  return factor ? 'holds' : 'holds in its shape, not in its factor';
}

/** How many claims of these hold, in words. */
function counted(rows: readonly Claim[]): string {
  const whole = rows.filter(({ holds, factor }) => holds && factor !== false).length;
  const shape = rows.filter(({ holds, factor }) => holds && factor === false).length;
  const shapes = shape === 0 ? '' : `${shape} hold in their shape and miss a factor, `;
  return `${whole} of ${rows.length} hold, ${shapes}${rows.length - whole - shape} do not hold`;
}

/** Of how many claims, the papers' and our own, this is why they do not hold, or miss a factor. */
function countOf(why: WhyNot): string {
  const missed = everywhere.filter(({ id, holds, factor }) => (!holds || factor === false) && whyNotOf(id) === why);
  const ours = missed.filter(({ id }) => id[0] === 'O').length;
  return ours === 0 ? `${missed.length}` : `${missed.length}, of which ${ours} of our own`;
}

function page(): string {
  const rows = everywhere.map(({ id, claim, holds, factor, sensitivity }) => {
    const shape = `${holds ? 'holds' : 'does not hold'}${marksOf(id)}`;
    const met = factor === undefined ? '–' : factor ? 'holds' : 'does not hold';
    const why = holds && factor !== false ? '' : (whyNotOf(id) ?? '');
    const name = `[${id}](#${id.toLowerCase().replace('.', '')})`;
    return `| ${name} | ${claim} | ${shape} | ${met} | ${why} | ${shortSensitivity(sensitivity)} |`;
  });
  const [papers, ours] = [everywhere.filter(({ id }) => id[0] !== 'O'), everywhere.filter(({ id }) => id[0] === 'O')];
  const parts = everywhere.map(({ id, claim, source, expected, measured, holds, factor, note, sensitivity }) => {
    const { caption, schemes } = FIGURES.find((figure) => figure.id === id)!;
    return [
      `## ${id}`,
      `${source}: ${claim}.`,
      `![The picture of ${id}](figures/${id}.svg)`,
      caption,
      `- Expected: ${expected}.`,
      `- Measured: ${measured}.`,
      `- The claim **${verdict(holds, factor)}**.${note === '' ? '' : ` Note: ${note}.`}`,
      ...said(sensitivity),
      `- [Data](figures/${id}.json); schemes and programs: ` +
        `${schemes.map((file) => `[${basename(file)}](../${file})`).join(', ')}.`,
    ]
      .join('\n\n')
      .replaceAll('.\n\n- ', '.\n- ');
  });
  return `# Results

Papers claim things about one-sided communication, locks, fences, barriers and supersteps. For each claim this library
runs a program on a model of the paper's machine ([modelled fabrics](guide/fabrics.md)). This page says what has to come
out for the claim to hold, what came out, and the verdict.

**Claims of the papers: ${counted(papers)}. Claims of our own: ${counted(ours)}.**

The papers, by the letters of their claims ([titles](references.md)):

- D: a dissertation on MPI's one-sided operations over InfiniBand. D4 to D10 are its chapters.
- B: a report on BSP-IB, a library for InfiniBand whose programs communicate in supersteps.
- M: a paper that predicts the time of such programs, on machines whose processors are alike and on clusters of nodes.
- N: a report on barriers that network adapters carry out by themselves, on Myrinet and Quadrics.
- T: a paper on supersteps over Ethernet with TCP, whose packets have slots of time so that they do not collide.
- O: our own claims.

Their words:

- Locks (D4, D5): the target's processor answers messages (*two-sided*), or the target's network adapter carries out
  atomic operations (*direct*, or *one-sided*). A *hybrid* lock changes between atomics of the processor, for ranks of
  the same node, and of the adapter.
- Fences (D6): *deferred* ones send all puts when the fence is called. The others send each put at once, and differ in
  how a target learns that all puts have arrived.
- Transfers of many pieces (D8): a request for each piece (*multi-write*), copies by both processors (*pack*), or the
  adapters gather and scatter the pieces (*SGRS*, send gather, receive scatter). *Host-assisted*: a helper at the target
  answers.
- Supersteps (B, M, T): all processes compute, exchange data, and meet at a barrier. A superstep costs *l*, and *g* for
  each word that a process sends or receives. On clusters *g* and *l* are those within a node, *G* and *L* those between
  nodes.

The columns of the table:

- *shape*: whether what is quicker, where lines cross, and how times grow are as claimed. (f): the model was set by one
  of the paper's numbers, so that this number shows nothing. (c): criterion, program or machine was changed after a
  first measurement; the note says how, or what \`git log\` has of [claims.json](claims.json).
- *factor*: whether a number holds that the claim repeats from the paper, where the shape is judged without it.
- *why not*:
  - \`finding\` (${countOf('finding')}): the program does what the paper describes, and the result contradicts it;
  - \`program\` (${countOf('program')}): our program differs from the paper's, or the paper does not say what it is;
  - \`machine\` (${countOf('machine')}): a number of the machine decides, or does in part, and no source gives it. It
    may be none that a fabric has, or have to differ by more than 30 %;
  - \`model\` (${countOf('model')}): the model leaves out a part of the machine, or of its software, that decides.
- *other numbers*: whether the verdict on the shape changes if one of the numbers that
  [no source gives](guide/fabrics.md#fabrics) is 30 % less or more. *Unchanged (24)*: it was tried with 24 numbers, one
  at a time: all without a source that the verdict, or the part of it that fails, uses. How fast processors compute is
  no number of a fabric; notes say where it decides. *Not tried*: the figure was measured again since
  (\`npm run figures -- --sensitivity\` takes hours).

A fabric has the same numbers in all figures; a figure that varies one says so. \`npm run figures\` writes this page in
a quarter of an hour on two cores: do not edit it. The measurements are the same on every machine. All values are in the
data of each figure. Some rows are also measured on real ranks${pagesOfReal()}; supersteps of T2 and T4 to T6
[on ordinary networks](results-real-ethernet.md).

| | claim | shape | factor | why not | other numbers |
| --- | --- | --- | --- | --- | --- |
${rows.join('\n')}

${parts.join('\n\n')}
`;
}

/** Nothing where the table says it all. */
function said(sensitivity: Sensitivity | undefined): readonly string[] {
  return sensitivity === undefined || sensitivity.flips.length + sensitivity.failed.length === 0
    ? []
    : [`- Other numbers: ${describeSensitivity(sensitivity)}.`];
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
Where a claim does not hold and no reason is given, it is not understood
([what is known](measured.md#the-modelled-fabric-and-claims)).

| claim | measured | expected | on this machine, the claim |
| --- | --- | --- | --- |
`;
}
