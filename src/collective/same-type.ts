import type { TypedArray } from '../datatype/base-types.ts';

/** Message bytes as an array of `like`'s type. Mostly they are aligned for it. */
export function sameType(like: TypedArray, message: Uint8Array): TypedArray {
  const ofLike = like.constructor as new (buffer: ArrayBufferLike, offset: number, length: number) => TypedArray;
  const own = message.byteOffset % like.BYTES_PER_ELEMENT === 0 ? message : message.slice();
  return new ofLike(own.buffer, own.byteOffset, own.byteLength / like.BYTES_PER_ELEMENT);
}
