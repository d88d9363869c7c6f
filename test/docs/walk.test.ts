/** The page that walks a put, a fence and a lock through the files names those that a stack shows, in its order. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runTasks } from '../../src/comm/tasks.ts';
import { QueuePairCore } from '../../src/providers/core/queue-pair.ts';
import { Lock } from '../../src/sync/lock/scheme.ts';
import { Assert } from '../../src/window/assert.ts';
import { Window } from '../../src/window/window.ts';

const METHODS = ['wrRdmaWrite', 'wrRdmaWriteImm', 'wrAtomicCmpSwp'] as const;
type Method = (typeof METHODS)[number];

/**
 * The files of src/ that a stack goes through, the outermost first, each once, without those that drive ranks and
 * waits.
 */
function filesOf(stack: string): string[] {
  const files = [...stack.matchAll(/\/src\/([\w/.-]+\.ts)/g)].map((match) => match[1] as string).reverse();
  return files.filter((file, i) => files.indexOf(file) === i && !file.startsWith('comm/'));
}

/** By the method that builds the request of a put, a fence and a lock: the files on its stack. */
async function walk(): Promise<Map<Method, string[]>> {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 50;
  const seen = new Map<Method, string[]>();
  /** What is called now. Requests of other calls are not looked at. */
  let expected: Method | undefined;
  const prototype = QueuePairCore.prototype as unknown as Record<Method, (...args: unknown[]) => void>;
  const originals = METHODS.map((method) => prototype[method]);
  for (const [i, method] of METHODS.entries()) {
    prototype[method] = function (...args) {
      if (expected === method) {
        expected = undefined;
        seen.set(method, [...filesOf(new Error(method).stack as string), 'providers/core/queue-pair.ts']);
      }
      originals[i]?.apply(this, args);
    };
  }
  try {
    await runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Float64Array, 1);
        await win.fence();
        if (world.rank === 0) {
          expected = 'wrRdmaWrite';
          win.put(Float64Array.of(1), 1, 0);
          expected = 'wrRdmaWriteImm';
        }
        await win.fence(Assert.NO_SUCCEED);
        if (world.rank === 0) {
          expected = 'wrAtomicCmpSwp';
          await win.lock(1, Lock.EXCLUSIVE);
          await win.unlock(1);
        }
        await win.free();
      },
      { fabric: 'infinihost-64' },
    );
  } finally {
    Error.stackTraceLimit = limit;
    for (const [i, method] of METHODS.entries()) prototype[method] = originals[i] as () => void;
  }
  return seen;
}

/** The files that the page names in a section, in its order. */
function sectionOf(heading: string): string[] {
  const page = readFileSync(new URL('../../docs/walk.md', import.meta.url), 'utf8');
  const section = page.split(/^## /m).find((text) => text.startsWith(heading)) ?? '';
  return [...section.matchAll(/^\d+\. \[`([\w/.-]+)`\]\(\.\.\/src\/\1\)/gm)].map((match) => match[1] as string);
}

test('a put, a fence and a lock go through the files that docs/walk.md names', async () => {
  const seen = await walk();
  expect(sectionOf('A put')).toEqual(seen.get('wrRdmaWrite'));
  expect(sectionOf('A fence')).toEqual(seen.get('wrRdmaWriteImm'));
  expect(sectionOf('A lock')).toEqual(seen.get('wrAtomicCmpSwp'));
});
