/** Descriptions of fabrics: those of this package are complete, and what is wrong in one is told by file and field. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type Fabric, fabricNames, loadFabric, observeFabric, readFabric } from '../../src/fabrics/index.ts';
import type { Communicator } from '../../src/index.ts';
import { tcpVariants } from '../../src/providers/modelled/ethernet/tcp-variants.ts';
import { checkFabric } from '../../src/providers/modelled/fabric-description.ts';
import { runTasks } from '../../src/start/tasks.ts';

const run = (fabric: unknown): Promise<number[]> => runTasks(2, ({ rank }) => rank, { fabric: fabric as Fabric });

type Loose = Record<string, Record<string, { value?: unknown; source?: unknown }>>;

const fresh = (): Loose =>
  JSON.parse(readFileSync(new URL('../../fabrics/infinihost-64.json', import.meta.url), 'utf8')) as Loose;

/** The error of a description that was changed. */
function errorOf(change: (description: Loose) => void): string {
  const description = fresh();
  change(description);
  try {
    readFabric('mine.json', description);
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_ARG' });
    return (error as Error).message;
  }
  return 'nothing is wrong';
}

describe('descriptions', () => {
  test('those of this package can be read', () => {
    expect(fabricNames()).toEqual([
      'bsp-ib-16',
      'connectx-16-cores',
      'ethernet-10-bus',
      'ethernet-100-bus',
      'ethernet-100-switch',
      'infinihost-64',
      'infinihost-express',
      'infinihost-pci-x',
      'myrinet-2000',
      'myrinet-lanai-9.1',
      'myrinet-lanai-xp',
      'quadrics-elan3',
    ]);
    for (const name of fabricNames()) expect(loadFabric(name).name).toBe(name);
  });

  test('every number that is missing, negative, no number, or without a source is told by its field', () => {
    for (const [part, fields] of Object.entries(fresh())) {
      if (typeof fields === 'string') continue;
      for (const field of Object.keys(fields)) {
        const at = `fabric mine.json: ${part}.${field}`;
        expect(errorOf((d) => delete d[part][field])).toBe(`${at} is missing`);
        for (const value of [-1, '1', null, Number.NaN, Number.POSITIVE_INFINITY, 1e12]) {
          expect(errorOf((d) => (d[part][field].value = value))).toContain(`${at}.value`);
        }
        expect(errorOf((d) => (d[part][field].source = ' '))).toContain(`${at}.source must say where`);
      }
      expect(errorOf((d) => delete d[part])).toBe(`fabric mine.json: ${part} is missing`);
    }
  });

  test('those of this package say of every number whether it has a source, is fitted, or free, and its range', () => {
    for (const name of fabricNames()) {
      const text = readFileSync(new URL(`../../fabrics/${name}.json`, import.meta.url), 'utf8');
      const parts = Object.entries(JSON.parse(text) as Loose).filter(([, fields]) => typeof fields !== 'string');
      for (const [part, fields] of parts) {
        for (const [field, { value, source }] of Object.entries(fields)) {
          const at = `${name}: ${part}.${field}`;
          expect(source, at).toMatch(/^(source: \S|fitted: to \S|free: \S.* \([\d.]+ to [\d.]+\)$)/);
          const [, least, most] = /^free: .*\(([\d.]+) to ([\d.]+)\)$/.exec(source as string) ?? [];
          if (least === undefined) continue;
          expect(Number(least), at).toBeLessThan(Number(most));
          expect(value, at).toBeGreaterThanOrEqual(Number(least));
          expect(value, at).toBeLessThanOrEqual(Number(most));
        }
      }
    }
  });

  test('counts are whole, and some things take time', () => {
    expect(errorOf((d) => (d['node']['ranks'].value = 1.5))).toContain('node.ranks.value must be an integer from 1');
    expect(errorOf((d) => (d['bus']['shared'].value = 2))).toContain('bus.shared.value');
    expect(errorOf((d) => (d['link']['latency'].value = 0))).toContain(
      'link.latency.value must be a number of microseconds above 0',
    );
    expect(errorOf((d) => (d['link']['outGap'].value = 1001))).toContain(
      'link.outGap.value must be a number of microseconds per byte',
    );
  });

  test('what it does not know is refused: it may be a misspelt field', () => {
    expect(errorOf((d) => (d['link']['latancy'] = { value: 1, source: 'a' }))).toContain('link.latancy is not a field');
    expect(errorOf((d) => (d['links'] = {}))).toContain('links is not a field');
  });

  test('of an Ethernet are complete, and what does not go together is told', () => {
    const bus = loadFabric('ethernet-10-bus') as Required<Fabric>;
    const behind = loadFabric('ethernet-100-switch') as Required<Fabric>;
    const { adapter, ethernet, tcp } = bus;
    const errorWith = (change: object, fabric: Fabric = bus): string => {
      try {
        checkFabric({ ...fabric, ...change });
      } catch (error) {
        expect(error).toMatchObject({ code: 'ERR_ARG' });
        return (error as Error).message;
      }
      return 'nothing is wrong';
    };
    const without = (part: object, field: string): object => ({ ...part, [field]: undefined });
    for (const field of Object.keys(ethernet)) {
      expect(errorWith({ ethernet: without(ethernet, field) })).toContain(`ethernet.${field} is missing`);
    }
    for (const field of Object.keys(tcp)) expect(errorWith({ tcp: without(tcp, field) })).toContain(`tcp.${field} is`);
    for (const field of ['room', 'forward'])
      expect(errorWith({ ethernet: without(behind.ethernet, field) }, behind)).toContain(
        `${field} is missing: a switch`,
      );
    expect(errorWith({ ethernet: { ...ethernet, room: 4 } })).toContain('ethernet.room has no meaning on a bus');
    expect(errorWith({ ethernet: { ...behind.ethernet, slot: 5 } }, behind)).toContain('ethernet.slot has no meaning');
    expect(errorWith({ tcp: undefined })).toContain('tcp is missing: ethernet goes with it');
    expect(errorWith({ ethernet: undefined })).toContain('ethernet is missing: tcp goes with it');
    expect(errorWith({ ethernet: { ...ethernet, propagation: 27.3 } })).toContain('propagation must be below 27.20');
    expect(errorWith({ ethernet: { ...ethernet, jam: 3 } })).toContain('ethernet.jam must be a third of');
    expect(errorWith({ tcp: { ...tcp, mss: 1461 } })).toContain('tcp.mss must be at most 1460');
    expect(errorWith({ tcp: { ...tcp, window0: 1000 } })).toContain('tcp.window0 must be tcp.mss (1460) or more');
    expect(errorWith({ adapter: { ...adapter, packet: 1465 } })).toContain('adapter.packet must be at most 1464');
    expect(errorWith({ adapter: { ...adapter, barrierSend: 1, barrierReceive: 1 } })).toContain('no barriers');
    for (const variant of Object.values(tcpVariants))
      expect(errorWith({ tcp: { ...tcp, ...variant } })).toMatch(/^noth/);
  });

  test('files that are not there, or no JSON, are told', () => {
    expect(() => loadFabric('nowhere.json')).toThrowError(/nowhere.json: cannot read the file/);
    expect(() => loadFabric('tin-cans')).toThrowError(/no fabric is named "tin-cans"; give bsp-ib-16/);
  });
});

describe('fabrics that a program has made', () => {
  const numbers = loadFabric('infinihost-64');

  test('are taken if they are right, also with sources', async () => {
    expect(await run({ ...numbers, node: { ...numbers.node, ranks: 2 } })).toEqual([0, 1]);
    expect(await run(fresh())).toEqual([0, 1]);
  });

  test.each<[string, object, RegExp]>([
    ['a negative time', { link: { ...numbers.link, latency: -5 } }, /link\.latency must be .*, not -5/],
    ['more than can be', { link: { ...numbers.link, latency: 1e300 } }, /link\.latency must be .*, not 1e\+300/],
    ['no number', { link: { ...numbers.link, latency: Number.NaN } }, /link\.latency must be .*, not NaN/],
    ['a text', { link: { ...numbers.link, latency: '0.6' } }, /link\.latency must be .*, not "0\.6"/],
    [
      'a byte that takes seconds',
      { host: { ...numbers.host, copy: 1e6 } },
      /host\.copy must be a number of microseconds per byte/,
    ],
    ['a missing number', { adapter: { ...numbers.adapter, send: undefined } }, /adapter\.send is missing/],
    ['a missing part', { link: undefined }, /link is missing/],
    ['a part that is no object', { link: 3 }, /link must be an object, not 3/],
    ['nodes without ranks', { node: { ...numbers.node, ranks: 0 } }, /node\.ranks must be an integer from 1 .*, not 0/],
    ['half a port', { switch: { ...numbers.switch, leafPorts: 0.5 } }, /switch\.leafPorts must be an integer/],
    ['an empty part', { retry: {} }, /retry\.timeout is missing/],
    [
      'looks that take no time',
      { host: { ...numbers.host, lookAgain: 0 } },
      /host\.lookAgain must be a number of microseconds above 0/,
    ],
    ['messages of a byte', { adapter: { ...numbers.adapter, maxMessage: 1 } }, /adapter\.maxMessage must be .*8192/],
    ['a misspelt field', { link: { ...numbers.link, latancy: 1 } }, /link\.latancy is not a field; the fields are/],
  ])('are refused with %s, by name and field', async (_, change, message) => {
    const error = await run({ ...numbers, ...change }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'ERR_ARG', message: expect.stringMatching(message) });
    expect((error as Error).message).toMatch(/^fabric infinihost-64: /);
  });

  test('with sources are refused as files are', async () => {
    const description = fresh();
    description['link']['latency'].value = -5;
    await expect(run(description)).rejects.toThrowError(
      /fabric infinihost-64: link\.latency\.value must be .*, not -5/,
    );
  });
});

describe('an observed fabric', () => {
  const fabric = loadFabric('infinihost-64');
  const program = async (world: Communicator): Promise<number> => {
    await world.barrier();
    return world.now();
  };
  const readBy = async (of: (observed: Fabric) => Fabric = (observed) => observed): Promise<Set<string>> => {
    const read = new Set<string>();
    const observed = of(observeFabric(fabric, (number) => void read.add(number)));
    expect(await runTasks(2, program, { fabric: observed })).toEqual(await runTasks(2, program, { fabric }));
    return read;
  };

  test('tells which numbers a run reads, and changes nothing', async () => {
    const read = await readBy();
    for (const number of ['host.post', 'host.completion', 'link.latency', 'switch.latency'])
      expect(read).toContain(number);
    // Nobody uses atomics, or is interrupted.
    for (const number of ['node.atomic', 'adapter.atomic', 'host.interrupt']) expect(read).not.toContain(number);
  });

  test('keeps observing the parts that a program does not change', async () => {
    const read = await readBy((observed) => ({ ...observed, node: { ...observed.node, ranks: 1 } }));
    expect(read).toContain('host.post');
    expect(read).not.toContain('adapter.atomic');
    // The copy has read them all.
    expect(read).toContain('node.atomic');
  });

  test('has its parts in their places', async () => {
    const { host, ...others } = observeFabric(fabric, () => {});
    await expect(run({ ...others, host, link: host })).rejects.toThrowError(/link\.post is not a field/);
  });
});
