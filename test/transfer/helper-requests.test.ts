/** What a helper is asked (src/verbs/helper.ts): the same bytes as native/rdma_helper.cc reads. */
import { describe, expect, test } from 'vitest';
import { HELPER_GROUP, HelperRequest, HelperRequestWriter, helperRequestBytes } from '../../src/verbs/helper.ts';

describe('requests to a helper', () => {
  const [entries, at] = [30, helperRequestBytes(30)];
  const memory = new ArrayBuffer(2 * at);
  const writer = new HelperRequestWriter(memory, at, entries);

  test('say of each message how many pieces it has, and of each piece where it lies', () => {
    writer.begin(HelperRequest.GET);
    writer.piece(8, 16);
    writer.piece(2 ** 40, 2 ** 31);
    writer.endMessage();
    writer.piece(24, 1);
    writer.endMessage();
    expect([...new Uint32Array(memory, at, 4)]).toEqual([HelperRequest.GET, 2, 2, 1]);
    expect([...new Float64Array(memory, at + 40, 6)]).toEqual([8, 16, 2 ** 40, 2 ** 31, 24, 1]);
    expect(writer.bytes).toBe(40 + 3 * 16);
  });

  test('begin anew, and have room for as many messages and pieces as there may be', () => {
    writer.begin(HelperRequest.PUT);
    for (let m = 0; m < HELPER_GROUP; m++) {
      for (let i = 0; i < entries; i++) writer.piece(i, 1);
      writer.endMessage();
    }
    expect(writer.bytes).toBe(at);
    expect([...new Uint32Array(memory, at, 10)]).toEqual([HelperRequest.PUT, HELPER_GROUP, ...Array(8).fill(entries)]);
  });
});
