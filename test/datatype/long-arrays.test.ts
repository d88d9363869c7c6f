/**
 * Arrays of more bytes than the engine can have in an array of bytes (Node 20: 2^32; later versions have longer ones).
 */
import { expect, test } from 'vitest';
import { bytesOf } from '../../src/datatype/base-types.ts';

test('are refused with a code, or seen whole', () => {
  // Zeroed memory that nobody touches takes none.
  const long = new Float64Array(2 ** 29 + 1);
  let bytes: Uint8Array | undefined;
  let error: unknown;
  try {
    bytes = bytesOf(long);
  } catch (thrown) {
    error = thrown;
  }
  if (bytes !== undefined) expect(bytes.length).toBe(2 ** 32 + 8);
  else expect(error).toMatchObject({ code: 'ERR_SIZE', message: expect.stringContaining('4294967304 bytes') });
});
