/** Options that are misspelt are refused by name, with the one that was meant. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Communicator, Datatype, init, Lock, Window } from '../../src/index.ts';
import { nearest, unknownName } from '../../src/options.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { BoundedQueue, Mutex } from '../../src/structures/index.ts';

const one = Float64Array.of(1);
let world: Communicator;
let win: Window<Float64Array>;

beforeAll(async () => {
  world = await init();
  win = await Window.allocate(world, Float64Array, 4);
});
afterAll(async () => {
  await win.free();
  await world.finalize();
});

/** As a program in JavaScript would give them. */
const wrong = (options: object): never => options as never;
const meant = (call: string, word: string, name: string) =>
  expect.objectContaining({
    name: 'TypeError',
    code: 'ERR_ARG',
    message: expect.stringMatching(new RegExp(`^${call}: .*unknown name "${word}"; did you mean "${name}"\\?$`)),
  });

describe('a misspelt option', () => {
  const { FLOAT64 } = Datatype;
  const asynchronous: [string, string, string, () => Promise<unknown>][] = [
    ['init', 'jobb', 'job', () => init(wrong({ jobb: 'x', size: 1 }))],
    ['init', 'timeot', 'timeout', () => init(wrong({ timeot: 5 }))],
    ['Window.allocate', 'nam', 'name', () => Window.allocate(world, Float64Array, 1, wrong({ nam: 'x' }))],
    ['Window.create', 'dispunit', 'dispUnit', () => Window.create(world, one, wrong({ dispunit: 1 }))],
    ['Window.createDynamic', 'inof', 'info', () => Window.createDynamic(world, wrong({ inof: {} }))],
    ['barrier', 'timeot', 'timeout', () => world.barrier(wrong({ timeot: 5 }))],
    ['allgather', 'singal', 'signal', () => world.allgather(one, new Float64Array(1), wrong({ singal: undefined }))],
    ['fence', 'Timeout', 'timeout', () => win.fence(0, wrong({ Timeout: 5 }))],
    ['lock', 'time_out', 'timeout', () => win.lock(0, Lock.SHARED, 0, wrong({ time_out: 5 }))],
    ['finalize', 'timeou', 'timeout', () => world.finalize(wrong({ timeou: 5 }))],
    ['Mutex.create', 'ownr', 'owner', () => Mutex.create(world, wrong({ ownr: 0 }))],
    [
      'BoundedQueue.create',
      'lenght',
      'length',
      () => BoundedQueue.create(world, Float64Array, 4, wrong({ lenght: 2 })),
    ],
    ['runTasks', 'fabrik', 'fabric', () => runTasks(1, () => {}, wrong({ fabrik: 'infinihost-64' }))],
    ['runTasks', 'los', 'loss', () => runTasks(1, () => {}, { fabric: 'infinihost-64', faults: wrong({ los: 1 }) })],
  ];
  it.each(asynchronous)('of %s: %s for %s', async (call, word, name, act) => {
    await expect(act()).rejects.toThrow(meant(call, word, name));
  });

  it('of a form that blocks', () => {
    expect(() => world.barrierSync(wrong({ timeot: 5 }))).toThrow(meant('barrier', 'timeot', 'timeout'));
    expect(() => win.fenceSync(0, wrong({ timeot: 5 }))).toThrow(meant('fence', 'timeot', 'timeout'));
  });

  it('of a layout, also of one like the last', async () => {
    const target = { type: FLOAT64, count: 1 };
    await win.fence();
    win.put(one, 0, 0, { target });
    expect(() => win.put(one, 0, 0, wrong({ target, orgin: target }))).toThrow(meant('put', 'orgin', 'origin'));
    expect(() => win.put(one, 0, 0, wrong({ target: { ...target, cont: 2 } }))).toThrow(meant('put', 'cont', 'count'));
    expect(() => win.get(one, 0, 0, wrong({ traget: target }))).toThrow(meant('get', 'traget', 'target'));
    await win.fence();
  });

  it('is not a hint: MPI ignores those that it does not know', async () => {
    const other = await Window.allocate(world, Float64Array, 1, { info: { fense: 'deferred' } as never });
    await other.free();
  });

  it.each([
    ['epoch', /did you mean "epochs"\?/],
    ['conflicts,request', /unknown name "request"; did you mean "requests"\?/],
    ['nodes:many', /nodes:N needs a number of ranks from 1 to 999999, not "nodes:many"/],
    ['drop:1', /drop:P needs a share from 0 to below 1, not "drop:1"/],
    [
      'everything',
      /unknown name "everything"; the known names are epochs, conflicts, poison, requests, neighbours, drop:P, nodes:N/,
    ],
    ['epochs, conflicts,,nodes:2,drop:0.05', undefined],
  ])('of ONESIDED_DEBUG=%s', (words, message) => {
    const program = `import { init } from 'onesided'; await (await init()).finalize();`;
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      env: { ...process.env, ONESIDED_DEBUG: words },
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual(message === undefined ? [0, ''] : [1, expect.stringMatching(message)]);
  });
});

describe('a timeout of 0, which could mean "do not wait" or "no timeout"', () => {
  const none = wrong({ timeout: 0 });
  const refused = (call: string) =>
    expect.objectContaining({
      name: 'RangeError',
      code: 'ERR_ARG',
      message:
        `${call}: timeout must be more than 0 milliseconds, not 0; ` +
        'leave it out for the default, or pass Infinity for no timeout',
    });

  it.each<[string, () => Promise<unknown>]>([
    ['barrier', () => world.barrier(none)],
    ['receive', () => world.receive(one, 0, none)],
    ['fence', () => win.fence(0, none)],
    ['lock', () => win.lock(0, Lock.SHARED, 0, none)],
    ['Window.allocate', () => Window.allocate(world, Float64Array, 1, none)],
  ])('is refused by %s', async (call, act) => {
    await expect(act()).rejects.toThrow(refused(call));
  });

  it('is none for all calls, where it is the default that init or runTasks is given', async () => {
    expect(await init(none)).toBe(world);
    const ranks = await runTasks(2, (own) => own.barrier(), { fabric: 'infinihost-64', timeout: 0 });
    expect(ranks).toHaveLength(2);
  });

  it('is refused by forms that block, and none is a timeout', async () => {
    expect(() => world.barrierSync(none)).toThrow(refused('barrier'));
    world.barrierSync({ timeout: Number.POSITIVE_INFINITY });
    await world.barrier({ timeout: Number.POSITIVE_INFINITY });
    const ranks = await runTasks(2, (own) => own.barrier({ timeout: Number.POSITIVE_INFINITY }), {
      fabric: 'infinihost-64',
      timeout: Number.POSITIVE_INFINITY,
    });
    expect(ranks).toHaveLength(2);
  });
});

describe('the name that was meant', () => {
  it('is one or two letters off, or goes on', () => {
    const known = ['signal', 'timeout', 'info', 'dispUnit', 'name', 'epochs'];
    const found = [
      'nam',
      'nmae',
      'names',
      'TIMEOUT',
      'timeot',
      'tiemout',
      'epoch',
      'disp',
      'displacementUnit',
      'x',
      'colour',
    ];
    expect(found.map((word) => nearest(word, known))).toEqual([
      'name',
      'name',
      'name',
      'timeout',
      'timeout',
      'timeout',
      'epochs',
      'dispUnit',
      undefined,
      undefined,
      undefined,
    ]);
    expect(unknownName('colour', known)).toBe(
      'unknown name "colour"; the known names are signal, timeout, info, dispUnit, name, epochs',
    );
  });
});
