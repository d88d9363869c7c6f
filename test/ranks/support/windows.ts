/** Windows as most cases use them. */
import { type Communicator, Window, type WindowInfo } from 'onesided';
import { argument } from './cases.ts';

/** `--info=JSON`: hints of all windows that are made here. */
const INFO = JSON.parse(argument('info') ?? '{}') as WindowInfo;

/** Allocates a window of doubles with these hints, lets all ranks use it, and frees it. */
export async function allocated(
  world: Communicator,
  length: number,
  info: WindowInfo,
  use: (win: Window<Float64Array>) => unknown,
): Promise<void> {
  const win = await Window.allocate(world, Float64Array, length, { info: { ...info, ...INFO } });
  await use(win);
  await win.free();
}
