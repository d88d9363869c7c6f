/**
 * What the programs of this folder have in common when ranks run them: their command lines, their results, and how they
 * end.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Communicator, init, type WindowInfo } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import type { Form } from '../calls.ts';
import { inRange, oneOf, orExplain, wholeNumber } from '../options.ts';
import { type HintName, hintOptions, readHints } from './hints.ts';
import { type Machine, modelledMachine, realMachine } from './machine.ts';
import { type Modelled, readModelled } from './modelled.ts';

interface Spec<N extends string, W extends string> {
  /** Options that are whole numbers: what they are if nobody says, the least and the most. */
  readonly numbers: Readonly<Record<N, readonly [usual: number, least: number, most: number]>>;
  /** Options that are one of some words, the first one if nobody says. */
  readonly words?: Readonly<Record<W, readonly string[]>>;
  /** The hints of the window that can be given, as the options of those names (hints.ts). */
  readonly hints: readonly HintName[];
}

interface Values<N extends string, W extends string> {
  readonly number: Readonly<Record<N, number>>;
  readonly word: Readonly<Record<W, string>>;
  readonly info: WindowInfo;
}

/** Bytes of a transfer: words of four. */
export function inWords(bytes: number): number {
  if (bytes % 4 !== 0) throw new RangeError(`--bytes is a multiple of 4, not ${bytes}`);
  return bytes;
}

/**
 * Reads the command line (also `--form sync|promise`, `--json FILE`, `--quiet`), joins the job, and runs the program.
 * Rank 0 writes and prints the result. The exit code is 2 for a command line that makes no sense, 1 for a result with
 * errors.
 *
 * With `--fabric NAME` (and `--ranks N`, `--seed N`, `--trace FILE`) the ranks are tasks of this process, on a modelled
 * fabric.
 */
export async function program<N extends string, W extends string, O, R extends { readonly errors: number }>(
  spec: Spec<N, W>,
  read: (values: Values<N, W>) => O,
  main: (world: Communicator, options: O, machine: Machine) => Promise<R>,
  describe: (result: R) => string,
): Promise<void> {
  const { options, form, json, quiet, modelled } = orExplain(() => readCommandLine(spec, read));
  const tell = (result: R, ranks: number, form: Form): void => {
    if (json !== undefined) writeFileSync(json, `${JSON.stringify({ ...result, ranks, form })}\n`);
    if (!quiet) console.log(`${describe(result)}${result.errors === 0 ? '' : `\nWRONG: ${result.errors} errors`}`);
  };
  let result: R;
  if (modelled !== undefined) {
    const { ranks, ...tasks } = modelled;
    try {
      [result] = await runTasks(ranks, (world) => main(world, options, modelledMachine(world)), tasks);
    } catch (error) {
      if (!(error instanceof RangeError) || 'code' in error) throw error;
      console.error(error.message);
      process.exitCode = 2;
      return;
    }
    tell(result, ranks, 'promise');
    process.exitCode = result.errors === 0 ? 0 : 1;
    return;
  }
  const world = await init();
  const speaks = world.rank === 0;
  try {
    result = await main(world, options, realMachine(form));
  } catch (error) {
    // What all ranks find wrong, such as their number; the library's own errors go on.
    if (!(error instanceof RangeError) || 'code' in error) throw error;
    if (speaks) console.error(error.message);
    return leave(world, 2);
  }
  if (speaks) tell(result, world.size, form);
  await leave(world, result.errors === 0 ? 0 : 1);
}

/**
 * All ranks leave with the same exit code. One that is not 0 is a failure to those that are not out yet: not one to
 * speak of.
 */
async function leave(world: Communicator, code: number): Promise<void> {
  process.exitCode = code;
  if (code === 0) await world.finalize();
  else await world.finalize().catch(() => {});
}

function readCommandLine<N extends string, W extends string, O>(
  { numbers, words, hints }: Spec<N, W>,
  read: (values: Values<N, W>) => O,
): { options: O; form: Form; json: string | undefined; quiet: boolean; modelled: Modelled | undefined } {
  const choices: Readonly<Record<string, readonly string[]>> = { ...words, form: ['sync', 'promise'] };
  const text = [...Object.keys(numbers), ...Object.keys(choices), 'json', 'fabric', 'ranks', 'seed', 'trace'];
  const { values } = parseArgs({
    options: {
      ...Object.fromEntries(text.map((name) => [name, { type: 'string' as const }])),
      ...hintOptions(hints),
      quiet: { type: 'boolean' },
    },
  });
  const given = values as Readonly<Record<string, string | undefined>>;
  const number: Record<string, number> = {};
  for (const [name, [usual, least, most]] of Object.entries<readonly [number, number, number]>(numbers)) {
    const value = given[name];
    number[name] = value === undefined ? usual : wholeNumber(value);
    if (Number.isNaN(number[name])) throw new RangeError(`--${name} is a whole number, not '${value}'`);
    inRange(`--${name}`, number[name], least, most);
  }
  const word: Record<string, string> = {};
  for (const [name, values] of Object.entries(choices)) {
    word[name] = given[name] ?? values[0];
    oneOf(`--${name}`, word[name], values);
  }
  return {
    options: read({ number, word, info: readHints(values) } as unknown as Values<N, W>),
    form: word['form'] as Form,
    json: given['json'],
    quiet: values['quiet'] === true,
    modelled: readModelled(given),
  };
}
