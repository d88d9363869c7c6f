/** `hpput` and `hpget` without copies, and puts that are read: what takes memory for chunks, and what does not. */
import { type BspOptions, begin } from 'onesided/bsp';
import { runTasks } from 'onesided/fabrics';
import { expect, test } from 'vitest';

const WORDS = 100_000;
const BYTES = 8 * WORDS;

/** Each of two processes moves 800 kB to the other one. @returns bytes for chunks, and whether all is there */
async function moved(options: BspOptions, call: 'put' | 'hpput' | 'hpget'): Promise<{ bytes: number; right: boolean }> {
  const [found] = await runTasks(
    2,
    async (world) => {
      const bsp = await begin(world, options);
      const x = new Float64Array(WORDS).fill(bsp.pid + 1);
      const own = new Float64Array(WORDS).fill(10 + bsp.pid);
      bsp.pushReg(x);
      await bsp.sync();
      const other = 1 - bsp.pid;
      if (call === 'hpget') bsp.hpget(other, x, 0, own);
      else bsp[call](other, own, x);
      await bsp.sync();
      const { bufferBytes } = bsp;
      const right = (call === 'hpget' ? own : x).every((value) => value === (call === 'hpget' ? 1 : 10) + other);
      await bsp.end();
      return { bytes: bufferBytes, right };
    },
    { fabric: 'infinihost-64', seed: 1 },
  );
  return found!;
}

test.each(['hpput', 'hpget'] as const)('%s moves by RDMA, and needs no chunks', async (call) => {
  for (const delivery of ['zero-copy', 'auto'] as const) {
    const { bytes, right } = await moved({ delivery }, call);
    expect(right).toBe(true);
    expect(bytes).toBeLessThan(BYTES / 4);
  }
});

test('where it cannot, it is put, which needs them', async () => {
  const { bytes, right } = await moved({ delivery: 'packed' }, 'hpput');
  expect(right).toBe(true);
  expect(bytes).toBeGreaterThan(BYTES);
});

test.each(['packed', 'zero-copy'] as const)(
  'buffers for what comes are bounded, however much does: %s',
  async (delivery) => {
    const { bytes, right } = await moved({ delivery }, 'put');
    expect(right).toBe(true);
    // Data, in regions of which each is twice as large as the one before, and 64 buffers.
    expect(bytes).toBeLessThan(4 * BYTES + 64 * 16_384);
  },
);
