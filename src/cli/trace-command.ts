/** `onesided trace`: what a recorded run has, and a fence or a lock of it as a picture. */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { show } from '../errors.ts';
import { type Overview, overviewOf, stepOverview } from '../trace/overview.ts';
import { overviewPage, overviewSvg } from '../trace/overview-picture.ts';
import {
  absentFrom,
  type Choice,
  MOST_RANKS,
  ranksInWords,
  ranksOf,
  type Scene,
  sceneOf,
  selectionOf,
  windowsOf,
} from '../trace/scene.ts';
import { drawPage, drawSvg } from '../trace/sequence-picture.ts';
import { type StepChoice, stepsOf, superstepScene } from '../trace/superstep-scene.ts';
import { readTrace, type Trace } from '../trace/trace-reader.ts';
import { type Command, readOptions, UsageError } from './command.ts';
import { openInViewer } from './viewer.ts';

const OPTIONS = {
  window: { type: 'string' },
  fence: { type: 'string' },
  lock: { type: 'string' },
  epoch: { type: 'string' },
  superstep: { type: 'string' },
  computation: { type: 'string' },
  ranks: { type: 'string' },
  output: { type: 'string', short: 'o' },
  open: { type: 'boolean' },
} as const;

export const trace: Command = {
  summary: 'show the windows of a recorded run, or draw a fence, a lock, an epoch or a superstep',
  usage: `Usage: onesided trace list FILE
       onesided trace draw FILE [options]

FILE is a trace written by "onesided run --trace FILE". To see all of it, open it in https://ui.perfetto.dev.

list shows the windows of the run, and how many fences, locks and epochs each of them had; and its BSP computations.

draw writes a page with a message sequence chart of one of these:
  --window W     select the window by its name (default: the first that has what you ask for)
  --fence N      draw the N-th fence, and the epoch that it ends (default: the second)
  --lock N       draw the N-th lock that any rank acquired on the window, and the ranks that waited for it
  --epoch N      draw the N-th epoch of start, complete, post and wait
  --superstep N  draw a superstep of a BSP computation, with its phases
  --computation C  select the computation by its name in the list (default: the first that has the superstep)
  --ranks LIST   show only these ranks, such as 0-3,8 (default: all that take part); more than ${MOST_RANKS} are drawn
                 as an overview, a line for each rank
  -o FILE        write the page to FILE (default: sequence.html); if the name ends in .svg, write only the picture
  --open         open what was written in the program that the system has for it`,

  async run(args) {
    const { values, positionals } = readOptions(args, OPTIONS);
    const [what, file, ...rest] = positionals;
    if (what !== 'list' && what !== 'draw') {
      throw new UsageError(
        what === undefined ? 'give list or draw' : `the trace command must be list or draw, not ${show(what)}`,
      );
    }
    if (file === undefined) throw new UsageError('give the file of a trace');
    if (rest.length > 0) throw new UsageError(`unexpected argument '${rest[0]}'`);
    const asked = Object.keys(values);
    if (what === 'list' && asked.length > 0) throw new UsageError(`--${asked[0]} is an option of draw, not of list`);
    const chosen = ['fence', 'lock', 'epoch', 'superstep'].filter((option) => asked.includes(option));
    if (chosen.length > 1) throw new UsageError(`give --${chosen[0]} or --${chosen[1]}, not both`);
    const ranks = values.ranks === undefined ? undefined : rankList(values.ranks);
    const recorded = readTrace(file);
    if (what === 'list') {
      process.stdout.write(list(recorded));
      return 0;
    }
    const missing = ranks?.find((rank) => rank >= recorded.ranks);
    if (missing !== undefined)
      throw new UsageError(`--ranks: the run had ranks 0 to ${recorded.ranks - 1}, but no rank ${missing}`);
    const step = values.superstep === undefined ? undefined : count('--superstep', values.superstep);
    if (step === undefined && values.computation !== undefined) throw new UsageError('--computation needs --superstep');
    const picture =
      step !== undefined
        ? stepPicture(recorded, { superstep: step, computation: values.computation, ranks })
        : windowPicture(recorded, {
            window: values.window,
            fence: number('--fence', values.fence),
            lock: number('--lock', values.lock),
            epoch: number('--epoch', values.epoch),
            ranks,
          });
    const output = values.output ?? 'sequence.html';
    if (/\.(png|pdf|jpe?g|gif|webp)$/i.test(output))
      throw new UsageError(`-o: a picture is a page or, if its name ends in .svg, an SVG; ${show(output)} is neither`);
    try {
      writeFileSync(output, output.endsWith('.svg') ? picture.svg() : picture.page());
    } catch (error) {
      throw new UsageError(`cannot write the picture: ${(error as Error).message}`);
    }
    process.stdout.write(`${output}: ${picture.title}\n`);
    if (values.open !== true) return 0;
    const path = resolve(output);
    const why = await openInViewer(path);
    if (why === undefined) return 0;
    process.stderr.write(`onesided: the picture was not opened: ${why}; open it yourself: ${path}\n`);
    return 1;
  },
};

interface Picture {
  readonly title: string;
  svg(): string;
  page(): string;
}

/** Lanes beside each other for as many ranks as there is room for; otherwise an overview. */
function windowPicture(recorded: Trace, choice: Choice): Picture {
  const selection = selectionOf(recorded, choice);
  if ((choice.ranks ?? ranksOf(selection)).length > MOST_RANKS)
    return overviewPicture(overviewOf(recorded, selection, choice.ranks));
  return scenePicture(sceneOf(recorded, choice));
}

function stepPicture(recorded: Trace, choice: StepChoice): Picture {
  const scene = superstepScene(recorded, choice);
  return scene.ranks.length > MOST_RANKS ? overviewPicture(stepOverview(scene)) : scenePicture(scene);
}

function scenePicture(scene: Scene): Picture {
  return { title: scene.title, svg: () => drawSvg(scene), page: () => drawPage(scene) };
}

function overviewPicture(overview: Overview): Picture {
  return { title: overview.title, svg: () => overviewSvg(overview), page: () => overviewPage(overview) };
}

function list(recorded: ReturnType<typeof readTrace>): string {
  const { program, ranks, spans } = recorded;
  const windows = windowsOf(recorded);
  const steps = stepsOf(recorded).map(
    ({ id, processes, first, last }) =>
      `BSP computation ${id}: ${processes} processes, supersteps ${first} to ${last}\n`,
  );
  const head = `${program}, ${ranks} rank${ranks === 1 ? '' : 's'}, ${spans.length} spans\n${steps.join('')}`;
  if (windows.length === 0) return `${head}no windows\n`;
  const row = (cells: readonly (string | number)[]): string =>
    cells.map((cell, i) => (i === 0 ? String(cell).padEnd(20) : String(cell).padStart(8))).join('');
  const rows = windows.map(({ name, fences, locks, epochs }) => row([name, fences, locks, epochs]));
  const missing = windows.flatMap((window) => {
    const absent = window.fences === 0 ? [] : absentFrom(recorded, window, window.fences);
    if (absent.length === 0) return [];
    return [`${ranksInWords(absent)} never came to fence ${window.fences} of window ${window.name}`];
  });
  return `${head}${[row(['window', 'fences', 'locks', 'epochs']), ...rows, ...missing].join('\n')}\n`;
}

/** A number from 0 on. */
function count(option: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError(`${option} must be an integer of at least 0, not ${show(text)}`);
}

function number(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError(`${option} must be an integer of at least 1, not ${show(text)}`);
}

/** The ranks of `0-3,8`. */
function rankList(text: string): number[] {
  const ranks = text.split(',').flatMap((range) => {
    const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(range);
    if (match === null) throw new UsageError(`--ranks must be a list such as 0-3,8, not ${show(text)}`);
    const first = Number(match[1]);
    return Array.from({ length: Math.max(0, Number(match[2] ?? first) - first + 1) }, (_, i) => first + i);
  });
  if (ranks.length >= 1 && new Set(ranks).size === ranks.length) return ranks;
  throw new UsageError(`--ranks must list ranks, each once, not ${show(text)}`);
}
