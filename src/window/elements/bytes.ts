/** Bytes (element-kind.ts): the fast path moves them, and updates none. */
import { lengthOf } from '../../intrinsics.ts';
import { loadU8, storeU8 } from '../../transfer/loads/remote-part.ts';
import type { Target } from '../path/target.ts';
import type { ElementKind } from './element-kind.ts';

class Uint8 implements ElementKind<Uint8Array> {
  put({ part: { u8 }, kernels }: Target, at: number, origin: Uint8Array): boolean {
    const n = lengthOf(origin);
    if (n === 0 || at + n > u8.length) return false;
    storeU8(u8, at, origin, n, kernels);
    return true;
  }

  get({ part: { u8 }, kernels }: Target, at: number, origin: Uint8Array): boolean {
    const n = lengthOf(origin);
    if (n === 0 || at + n > u8.length) return false;
    loadU8(u8, at, origin, n, kernels);
    return true;
  }

  accumulate(): boolean {
    return false;
  }

  apart(): boolean {
    return false;
  }

  fetch(): boolean {
    return false;
  }

  fetchMany(): boolean {
    return false;
  }

  read(): boolean {
    return false;
  }

  swap(): boolean {
    return false;
  }
}

export const UINT8: ElementKind = new Uint8() as ElementKind;
