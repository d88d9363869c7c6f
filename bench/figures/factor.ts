/** The dissertation's LU on a modelled fabric: its pattern of gets, and arithmetic that is charged and not done. */
import type { Communicator, WindowInfo } from 'onesided';
import { runTasks, type TaskOptions } from 'onesided/fabrics';
import { chargedOn, type LuOptions, type LuResult, lu } from '../splash/lu.ts';

/** Of the matrix that is factored for good with each choice of locks, so that the result is verified. */
const VERIFIED = { n: 256, block: 16, ranks: 8 };
const verified = new Map<string, Promise<void>>();

/** @param gflops operations of a rank in a nanosecond */
export async function factorOn(
  options: TaskOptions,
  ranks: number,
  size: Pick<LuOptions, 'n' | 'block' | 'perNode'> & { readonly info: WindowInfo },
  gflops: number,
): Promise<LuResult> {
  const common = { seed: 1, lockType: 'exclusive', fetch: 'dissertation', samples: 1 } as const;
  const main = (kernel: string, n: number, block: number) => (world: Communicator) =>
    lu(world, { ...common, ...size, n, block, kernel, ...chargedOn(world, gflops) });
  const key = JSON.stringify(size.info);
  const check = async (): Promise<void> => {
    const [result] = await runTasks(VERIFIED.ranks, main('wasm', VERIFIED.n, VERIFIED.block), options);
    if (!result.verified) throw new Error(`LU with ${key} is wrong: residual ${result.residual}`);
  };
  const checked = verified.get(key) ?? check();
  verified.set(key, checked);
  await checked;
  const [result] = await runTasks(ranks, main('none', size.n, size.block), options);
  return result;
}
