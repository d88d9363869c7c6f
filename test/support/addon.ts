/** The addon in tests: they fail, and do not skip, where it should be there and is not. */
import { loadNative, type Native, nativeStatus } from '../../src/native.ts';

export function addon(): Native {
  const native = loadNative();
  if (native === undefined)
    throw new Error(`these tests need the addon ("npm run build:native"): ${nativeStatus().reason}`);
  return native;
}

/** Shared memory of so many 32-bit words, as a mapping of a fresh memory file. */
export function mappedWords(words: number): { fd: number; table: Int32Array } {
  const native = addon();
  const fd = native.memoryCreate('onesided-test');
  native.memoryResize(fd, 4 * words);
  return { fd, table: new Int32Array(native.memoryMap(fd, 0, 4 * words)) };
}

/**
 * Whether large memory of the program's own has to be remapped: the allocator is glibc's, and not a sanitizer's
 * (scripts/test-sanitize.mjs).
 */
export const REMAPS =
  process.env['ONESIDED_SANITIZED_ADDON'] === undefined &&
  (process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } }).header.glibcVersionRuntime !==
    undefined;
