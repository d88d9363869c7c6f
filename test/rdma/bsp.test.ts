/**
 * BSPlib on a real device: the requirements of its definition, its cases with each way of delivering a superstep by
 * messages, random programs among them, and a process that dies in a superstep. Run by `npm run test:rdma`, alone by
 * `npm run test:rdma -- --only bsp`; on libfabric by `npm run test:tcp`, but for what needs datagrams.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import { testChapter } from '../conformance/chapter.ts';
import { onesided } from '../launcher/command.ts';
import { describeCases } from '../support/cases.ts';
import { runRanks, seedOfRun } from '../support/ranks.ts';
import { ON_DEVICE, PROVIDER } from './device.ts';

const DYING = fileURLToPath(new URL('../../build/programs/test/ranks/robust-bsp.js', import.meta.url));

// The guest's processor is emulated, and all cases of a job run in its first hook. Against hanging only.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 600_000 });

const WAYS = {
  'counts to all, compressed headers': ['--delivery=packed', '--counts=all-to-all'],
  'counts by a tree, plain headers': ['--delivery=packed', '--counts=tree', '--headers=plain'],
  'counts by multicast': ['--delivery=packed', '--counts=multicast', '--nackAfter=1000'],
  // A question for each datagram, as if all were late.
  'counts by multicast, asked for': ['--delivery=packed', '--counts=multicast', '--nackAfter=0'],
  datagrams: ['--delivery=datagrams'],
  'datagrams in slots, asked for early': ['--delivery=datagrams', '--nackAfter=0', '--pacing={"slot":20}'],
  'zero-copy': ['--delivery=zero-copy'],
  auto: ['--delivery=auto'],
};

describe('the definition', () =>
  testChapter('bsp', [{ name: 'device', kind: 'processes', sizes: [2, 3], env: ON_DEVICE }]));

/** libfabric has none. */
const DATAGRAMS = PROVIDER !== 'libfabric';
const ways = Object.entries(WAYS).filter(([name]) => DATAGRAMS || !/multicast|datagrams/.test(name));

describe.each(ways)('BSPlib on a device: %s', (_, args) => {
  for (const size of [2, 3]) {
    describeCases(`on ${size} ranks`, 'bsp', {
      kind: 'processes',
      size,
      env: ON_DEVICE,
      args: [...args, `--seed=${seedOfRun()}`, '--programs=3'],
      timeout: 500,
    });
  }
});

test.each(['put', 'get'])('a process that dies in a superstep ends the sync of the others: %s', async (what) => {
  const job = ['run', '-n', '3', '--provider', PROVIDER, '--timeout', '200', DYING, '--'];
  const { code, stdout, stderr } = await onesided(...job, '--delivery=packed', `--what=${what}`);
  const told = [...stdout.matchAll(/^(?:\[ *\d+\] )?(\{.*\})$/gm)].map(([, json]) => JSON.parse(json!));
  expect(told.map(({ rank }) => rank).sort(), stdout + stderr).toEqual([0, 1]);
  for (const { codes } of told) expect(codes, stderr).toEqual(['ERR_RMA_RANK_FAILED', 'ERR_RMA_RANK_FAILED']);
  expect(code, stdout + stderr).toBe(3);
});

interface Counted {
  readonly supersteps: number;
  readonly multicasts: number;
  readonly nacks: number;
  /** Datagrams that could not come. */
  readonly lost: number;
}

test.runIf(DATAGRAMS)('datagrams that the device does not bring are asked for, by whoever misses them', async () => {
  const size = 3;
  const ranks = await runRanks<Counted>('bsp-multicast', {
    kind: 'processes',
    size,
    env: ON_DEVICE,
    args: ['--deaf', '--nackAfter=50'],
    timeout: 500,
  });
  const { supersteps, multicasts, nacks, lost } = ranks[size - 1];
  expect(lost).toBeGreaterThan(10);
  expect(nacks).toBeGreaterThanOrEqual(lost);
  expect(multicasts).toBeLessThanOrEqual(supersteps - lost);
  expect(ranks.slice(0, -1).map((one) => one.lost)).toEqual([0, 0]);
});

test.runIf(DATAGRAMS)('on a device the counts come by multicast, and nobody asks', async () => {
  const ranks = await runRanks<Counted>('bsp-multicast', {
    kind: 'processes',
    size: 3,
    env: ON_DEVICE,
    timeout: 500,
  });
  for (const { supersteps, multicasts, nacks } of ranks) {
    expect(multicasts + nacks).toBeGreaterThanOrEqual(supersteps);
    // A datagram or two may be lost on a busy machine, also here.
    expect(multicasts).toBeGreaterThan(0.9 * supersteps);
  }
});
