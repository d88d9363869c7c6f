/** The page that walks a put, a fence and a lock through the files names those that a stack shows, in its order. */
import { readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { QueuePairCore } from '../../src/providers/core/queue-pair-base.ts';
import { ModelledQueuePair } from '../../src/providers/modelled/modelled-queue-pair.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { WorkRequestRing } from '../../src/verbs/work-request-ring.ts';
import { Window } from '../../src/window/calls/window.ts';
import { Assert } from '../../src/window/epochs/assertions.ts';

/** Where a stack is looked at: the calls that build requests, the ring that they write to, and the call that posts. */
const STOPS = [
  ['wrRdmaWrite', QueuePairCore, 'providers/core/queue-pair-base.ts'],
  ['wrRdmaWriteImm', QueuePairCore, 'providers/core/queue-pair-base.ts'],
  ['wrAtomicCmpSwp', QueuePairCore, 'providers/core/queue-pair-base.ts'],
  ['rdma', WorkRequestRing, 'verbs/work-request-ring.ts'],
  ['wrComplete', ModelledQueuePair, 'providers/modelled/modelled-queue-pair.ts'],
] as const;
type Stop = (typeof STOPS)[number][0];

/** The folder src/ of this clone, which may lie below any other. */
const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url));

/**
 * The files of a folder of sources that a stack goes through, the outermost first, each once, without those that drive
 * ranks and waits. Stacks name files by their paths or by URLs.
 */
function filesOf(stack: string, sources = SOURCES): string[] {
  const folders = [sources, pathToFileURL(sources).href];
  const files = stack.split('\n').flatMap((line) => {
    const folder = folders.find((name) => line.includes(name));
    const [file] =
      /^[\w/.-]+\.ts/.exec(folder === undefined ? '' : line.slice(line.indexOf(folder) + folder.length)) ?? [];
    return file ?? [];
  });
  files.reverse();
  return files.filter((file, i) => files.indexOf(file) === i && !/^(wait|message|job|collective|start)\//.test(file));
}

/** By stop: the files on the stack of a put, a fence or a lock there. */
async function walk(): Promise<Record<Stop, string[]>> {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 50;
  const seen = {} as Record<Stop, string[]>;
  /** What is called next. Requests of other calls are not looked at. */
  const expected: Stop[] = [];
  const restore: (() => void)[] = [];
  for (const [stop, { prototype }, file] of STOPS) {
    const methods = prototype as unknown as Record<string, (...args: unknown[]) => unknown>;
    const original = methods[stop]!;
    methods[stop] = function (...args) {
      if (expected[0] === stop) {
        expected.shift();
        seen[stop] = [...filesOf(new Error(stop).stack as string), file];
      }
      return original.apply(this, args);
    };
    restore.push(() => {
      methods[stop] = original;
    });
  }
  try {
    await runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Float64Array, 1);
        await win.fence();
        if (world.rank === 0) {
          expected.push('wrRdmaWrite', 'rdma', 'wrComplete');
          win.put(Float64Array.of(1), 1, 0);
          expected.push('wrRdmaWriteImm');
        }
        await win.fence(Assert.NO_SUCCEED);
        if (world.rank === 0) {
          expected.push('wrAtomicCmpSwp');
          await win.lock(1, Lock.EXCLUSIVE);
          await win.unlock(1);
        }
        await win.free();
      },
      { fabric: 'infinihost-64' },
    );
  } finally {
    Error.stackTraceLimit = limit;
    for (const undo of restore) undo();
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
  const put = [...seen.wrRdmaWrite, ...seen.rdma, ...seen.wrComplete];
  expect(sectionOf('A put')).toEqual([...new Set(put)]);
  expect(sectionOf('A fence')).toEqual(seen.wrRdmaWriteImm);
  expect(sectionOf('A lock')).toEqual(seen.wrAtomicCmpSwp);
});

test('the way of a put has three files to the builder call, four to the ring, five to the device', async () => {
  const { wrRdmaWrite, rdma, wrComplete } = await walk();
  const count = (...stacks: string[][]): number => new Set(stacks.flat()).size;
  expect([count(wrRdmaWrite), count(wrRdmaWrite, rdma), count(wrRdmaWrite, rdma, wrComplete)]).toEqual([3, 4, 5]);
});

test.each(['/home/a/src/onesided/src/', '/home/a b/Müller (1)/src/', '/src/src/src/'])('in %s, too', (sources) => {
  const frames = (folder: string): string =>
    `Error: x\n    at Window.put (${folder}window/calls/window.ts:1:2)\n    at async ${folder}job/job.ts:3:4\n` +
    `    at async Promise.all (index 0)\n    at ${folder}window/calls/slow-path.ts:5:6\n` +
    '    at /home/src/other/run.ts:1:1';
  const expected = ['window/calls/slow-path.ts', 'window/calls/window.ts'];
  expect(filesOf(frames(sources), sources)).toEqual(expected);
  expect(filesOf(frames(pathToFileURL(sources).href), sources)).toEqual(expected);
});
