/**
 * The errors of calls begin at the line of the program that called: their stacks, and the source line that Node prints
 * above them.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { type Communicator, Datatype, Lock, type LockAllEpoch, Window } from '../../src/index.ts';
import { runTasks } from '../../src/start/tasks.ts';

const FILE = fileURLToPath(import.meta.url);
const LINES = readFileSync(FILE, 'utf8').split('\n');
const ONE = new Float64Array(1);

interface Scene {
  readonly world: Communicator;
  readonly win: Window<Float64Array>;
  readonly open: Window<Float64Array>;
  readonly epoch: LockAllEpoch<Float64Array>;
}
const CALLS: Record<string, (scene: Scene) => unknown> = {
  put: ({ win }) => win.put(ONE, 1, 0),
  'put to a wrong place': ({ open }) => open.put(ONE, 1, 9),
  'put of an epoch': ({ epoch }) => epoch.put(ONE, 1, 9),
  'put of a handle': ({ open }) => open.aggregate(1).put(ONE, 9),
  'flush of an epoch': ({ epoch }) => epoch.flush(7),
  get: ({ open }) => open.get(ONE, 7, 0),
  accumulate: ({ open }) => open.accumulate(ONE, 1, 0, 'sum' as never),
  compareAndSwap: ({ open }) => open.compareAndSwap([] as never, ONE as never, ONE as never, 1, 0),
  rput: ({ open }) => open.rput(ONE, 1, -1),
  putNotify: ({ open }) => open.putNotify([] as never, 1, 0),
  'a layout': ({ open }) => open.put(ONE, 1, 0, { target: { count: -1 } } as never),
  'a group': ({ world }) => world.group.include([99]),
  'a type': () => Datatype.vector(-1, 1, 1, Datatype.FLOAT64),
  send: ({ world }) => world.send([] as never, 1),
  fence: ({ win }) => win.fence(1 << 30),
  lock: ({ win }) => win.lock(99, Lock.SHARED),
  allreduce: ({ world }) => world.allreduce(ONE, ONE, 'sum' as never),
};

/** By call, its error. */
async function errors(): Promise<Map<string, Error>> {
  const seen = new Map<string, Error>();
  await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Float64Array, 1);
      const open = await Window.allocate(world, Float64Array, 1);
      const epoch = await open.lockedAll();
      if (world.rank === 0) {
        for (const [name, call] of Object.entries(CALLS)) {
          try {
            await call({ world, win, open, epoch });
          } catch (error) {
            seen.set(name, error as Error);
          }
        }
      }
      await world.barrier().catch(() => {});
    },
    { fabric: 'infinihost-64' },
  ).catch(() => {});
  return seen;
}

it('an error begins at the line of the program that called', async () => {
  const seen = await errors();
  expect([...seen.keys()]).toEqual(Object.keys(CALLS));
  for (const [name, error] of seen) {
    const [, first] = /^ +at (.*)$/m.exec(error.stack!) ?? [];
    expect(first, `${name}: ${error.stack}`).toContain(FILE);
    const line = LINES[Number(/:(\d+):\d+\)?$/.exec(first!)![1]) - 1];
    expect(line.replace(/'/g, ''), name).toContain(`${name}: (`);
    expect(error.stack, name).toContain(error.message.split('\n')[0]);
  }
});

it('an error that is thrown into a callback of the program begins there', async () => {
  const layout = {
    get target(): never {
      Datatype.vector(-1, 1, 1, Datatype.FLOAT64);
      throw new Error('not reached');
    },
  };
  await runTasks(
    1,
    async (world) => {
      const win = await Window.allocate(world, Float64Array, 1);
      await win.lockAll();
      const error = (() => {
        try {
          win.put(ONE, 0, 0, layout as never);
          return undefined;
        } catch (thrown) {
          return thrown as Error;
        }
      })();
      const cause = error!.cause as Error;
      expect(/^ +at .*get target.*stacks\.test\.ts/m.exec(cause.stack!)?.index).toBe(cause.stack!.indexOf('    at '));
      await win.unlockAll();
    },
    { fabric: 'infinihost-64' },
  );
});

it('a deadlock of tasks begins at the line where the first rank waits that the program has there', async () => {
  const waits = async (world: Communicator): Promise<void> => {
    // Rank 0 is done, and waits in the library's own call for the others.
    if (world.rank === 1) await world.receive(ONE, 2);
    if (world.rank === 2) await world.barrier();
  };
  const error = (await runTasks(3, waits, { fabric: 'infinihost-64' }).catch((thrown: unknown) => thrown)) as Error;
  expect(error).toMatchObject({ code: 'ERR_RMA_WOULD_DEADLOCK' });
  const [, first] = /^ +at (.*)$/m.exec(error.stack!) ?? [];
  expect(first, error.stack).toContain(FILE);
  expect(LINES[Number(/:(\d+):\d+\)?$/.exec(first!)![1]) - 1]).toContain('await world.receive(ONE, 2)');
  expect(error.stack).toContain('rank 1 waits in receive');
  expect(error.stack).toContain('rank 2 waits in barrier');
});

it('limits of stacks, and a program that formats them itself, are left as they are', async () => {
  const [limit, prepare] = [Error.stackTraceLimit, Error.prepareStackTrace];
  const own = (): string => 'mine';
  try {
    Error.stackTraceLimit = 3;
    Error.prepareStackTrace = own;
    expect(() => Datatype.vector(-1, 1, 1, Datatype.FLOAT64)).toThrow();
    expect([Error.stackTraceLimit, Error.prepareStackTrace]).toEqual([3, own]);
  } finally {
    Error.stackTraceLimit = limit;
    Error.prepareStackTrace = prepare!;
  }
});

it('Node prints the line of the program above an error that nobody handles', () => {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-stack-'));
  try {
    const program = join(folder, 'program.mjs');
    const built = (name: string): string =>
      JSON.stringify(pathToFileURL(fileURLToPath(new URL(`../../dist/${name}/index.js`, import.meta.url))).href);
    writeFileSync(
      program,
      `import { runTasks } from ${built('fabrics')};
import { Window } from ${built('.')};
await runTasks(1, async (world) => {
  const win = await Window.allocate(world, Float64Array, 1);
  win.put(Float64Array.of(1), 0, 0);
}, { fabric: 'infinihost-64' });
`,
    );
    const { status, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8', timeout: 60_000 });
    expect(status).toBe(1);
    const [place, source] = stderr.split('\n');
    expect(place).toBe(`${pathToFileURL(program).href}:5`);
    expect(source).toBe('  win.put(Float64Array.of(1), 0, 0);');
    expect(stderr).not.toContain('onesided-library.js');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
