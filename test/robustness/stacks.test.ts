/** The stacks of errors: they lead to the line of the program that called. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { RmaError, Window } from '../../src/index.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { seenByCaller } from '../../src/wait/caller.ts';
import { RANK_KINDS, runRanks } from '../support/ranks.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-stacks.js', import.meta.url));

/** The line of a file that the first frame names. */
function lineOf(stack: string, file: string): string {
  const [first = ''] = /^ +at .*$/m.exec(stack) ?? [];
  const [, line] = new RegExp(`${file}:(\\d+):\\d+`).exec(first) ?? [];
  if (line === undefined) throw new Error(`no line of ${file} first: ${stack}`);
  return readFileSync(file, 'utf8').split('\n')[Number(line) - 1];
}

describe.each(RANK_KINDS)('between %s', (kind) => {
  it('the error of an awaited call that fails shows the line that awaits it', async () => {
    const [stacks] = await runRanks<Record<string, string>>('robust-stacks', { kind, size: 2 });
    const calls = Object.entries(stacks);
    expect(calls.map(([name]) => name)).toEqual(
      expect.arrayContaining(['fence', 'barrier', 'lock', 'flush', 'wait', 'allocate', 'allreduce']),
    );
    for (const [name, stack] of calls) {
      expect(stack, name).toMatch(/^ERR_RMA_TIMEOUT: RmaError: /);
      expect(lineOf(stack, PROGRAM), name).toContain(name === 'request' ? 'await request.wait(' : `.${name}(`);
    }
  });
});

it('the error of a wait that one of several timers ends shows the line that awaits it', async () => {
  const wait = new Promise<void>((_, reject) => setTimeout(() => reject(new RmaError('ERR_RMA_TIMEOUT', 'late')), 1));
  // Both are due, and Node goes on with what waits between them.
  setTimeout(() => {}, 2);
  const until = performance.now() + 10;
  while (performance.now() < until);
  let stack = '';
  try {
    await seenByCaller(wait);
  } catch (error) {
    stack = (error as Error).stack!;
  }
  expect(lineOf(stack, fileURLToPath(import.meta.url))).toContain('await seenByCaller');
});

it('on a modelled fabric the error of an awaited call that fails shows the line that awaits it', async () => {
  const stacks = await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Float64Array, 1);
      if (world.rank === 1) return '';
      const stack = await win.fence(0, { timeout: 1 }).then(
        () => 'it succeeded',
        (error: Error) => error.stack!,
      );
      const awaited = await (async () => {
        try {
          await world.barrier({ timeout: 1 });
          return 'it succeeded';
        } catch (error) {
          return (error as Error).stack!;
        }
      })();
      return `${stack}\n${awaited}`;
    },
    { fabric: 'infinihost-64' },
  );
  expect(lineOf(stacks[0], fileURLToPath(import.meta.url))).toContain('await');
});
