/**
 * What an array really is, whatever it says of itself. An object can have a `length`, `buffer` or `toString` tag of its
 * own, and a subclass can override the getters of its array; memory is accessed by the engine's own numbers, which only
 * the getters of the language know. They are taken here, once, before any program can replace them, and everything that
 * comes in from a program is asked by them.
 *
 * Elements need no such care: a typed array's `a[i]` is always its memory's, or `undefined`.
 */
import { types } from 'node:util';

const Arrays = Object.getPrototypeOf(Uint8Array.prototype) as object;

/** The getter of a prototype of the language. */
function getterOf<T>(prototype: object, name: string | symbol): (this: unknown) => T {
  return Object.getOwnPropertyDescriptor(prototype, name)!.get!;
}

const arrayTag = getterOf<string | undefined>(Arrays, Symbol.toStringTag);
const arrayLength = getterOf<number>(Arrays, 'length');
const arrayBytes = getterOf<number>(Arrays, 'byteLength');
const arrayOffset = getterOf<number>(Arrays, 'byteOffset');
const arrayBuffer = getterOf<ArrayBufferLike>(Arrays, 'buffer');
const viewBytes = getterOf<number>(DataView.prototype, 'byteLength');
const viewOffset = getterOf<number>(DataView.prototype, 'byteOffset');
const viewBuffer = getterOf<ArrayBufferLike>(DataView.prototype, 'buffer');
const plainBytes = getterOf<number>(ArrayBuffer.prototype, 'byteLength');
const sharedBytes = getterOf<number>(SharedArrayBuffer.prototype, 'byteLength');
const resizable = getterOf<boolean>(ArrayBuffer.prototype, 'resizable');
const growable = getterOf<boolean>(SharedArrayBuffer.prototype, 'growable');

const arraySet = (Arrays as Uint8Array).set as (this: unknown, from: unknown, at: number) => void;

/** `Float64Array`, … of a typed array of any realm; `undefined` for anything else. Some 2 ns. */
export function tagOf(value: unknown): string | undefined {
  return arrayTag.call(value);
}

/** The elements of a typed array; 0 if its memory is gone. Some 4 ns. */
export function lengthOf(array: ArrayBufferView): number {
  return arrayLength.call(array);
}

/** The bytes of a typed array; 0 if its memory is gone. */
export function byteLengthOf(array: ArrayBufferView): number {
  return arrayBytes.call(array);
}

export function byteOffsetOf(array: ArrayBufferView): number {
  return arrayOffset.call(array);
}

export function bufferOf(array: ArrayBufferView): ArrayBufferLike {
  return arrayBuffer.call(array);
}

/** The bytes of a `DataView`. Errors: `TypeError` if its memory is gone. */
export function bytesOfView(view: DataView): Uint8Array {
  return new Uint8Array(viewBuffer.call(view), viewOffset.call(view), viewBytes.call(view));
}

/** Bytes of an `ArrayBuffer` or a `SharedArrayBuffer`. */
export function bytesIn(buffer: ArrayBufferLike): number {
  return types.isSharedArrayBuffer(buffer) ? sharedBytes.call(buffer) : plainBytes.call(buffer);
}

/** Whether the length of a buffer can change. */
export function isResizable(buffer: ArrayBufferLike): boolean {
  return types.isSharedArrayBuffer(buffer) ? growable.call(buffer) : resizable.call(buffer);
}

/** Bytes of what `ArrayBuffer.isView` says yes to. For messages: 0 if the memory is gone. */
export function bytesSeen(view: ArrayBufferView): number {
  if (!types.isDataView(view)) return byteLengthOf(view);
  try {
    return viewBytes.call(view);
  } catch {
    return 0;
  }
}

/** Copies all elements of `from` to `to[at]`, …; both have the same type, and the caller has checked the range. */
export function setElements(to: ArrayBufferView, from: ArrayBufferView, at: number): void {
  arraySet.call(to, from, at);
}
