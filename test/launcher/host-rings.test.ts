/** Recordings of several hosts come together by one clock. */
import { expect, it } from 'vitest';
import { HostRings } from '../../src/launcher/hosts/host-rings.ts';
import { FIELDS, Field, Kind, RingWriter, ringBytes } from '../../src/trace/trace-ring.ts';

const EVENTS = 64;
/** The oldest record of a full ring may be being overwritten when it is read. */
const KEPT = EVENTS - 1;

/** A ring with records at these times, in the pieces in which an agent sends it. */
function sent(times: readonly number[], length: number): string[] {
  const ring = new Uint8Array(ringBytes(EVENTS));
  const writer = new RingWriter(ring.buffer, 0, EVENTS);
  for (const time of times) writer.write(time, Kind.CALL, writer.text('fence'), 0, -1, 0, 0, 0);
  const used = ring.findLastIndex((byte) => byte !== 0) + 1;
  return Array.from({ length: Math.ceil(used / length) }, (_, i) =>
    Buffer.from(ring.subarray(i * length, Math.min(used, (i + 1) * length))).toString('base64'),
  );
}

it('are put together from pieces, and set by the launcher’s clock unless it may be the same one', () => {
  const rings = new HostRings();
  const many = Array.from({ length: 70 }, (_, i) => 1e9 + i);
  for (const [rank, times] of [[1000, 2000], many, [5000]].entries())
    for (const piece of sent(times, 1000)) rings.keep(rank, piece);
  const clocks = [
    { ahead: 300, within: 200 },
    { ahead: -1e6, within: 10 },
    { ahead: -150, within: 200 },
    { ahead: 5, within: 1 },
  ];
  const all = rings.recordings(4, EVENTS, (rank) => clocks[rank]);
  const times = all.map(({ records, count }) =>
    Array.from({ length: count }, (_, i) => records[FIELDS * i + Field.TIME]),
  );
  expect(times).toEqual([[700, 1700], many.slice(70 - KEPT).map((time) => time + 1e6), [5000], []]);
  expect(all.map(({ texts }) => texts)).toEqual([['', 'fence'], ['', 'fence'], ['', 'fence'], ['']]);
  expect(all.map(({ dropped }) => dropped)).toEqual([0, 70 - KEPT, 0, 0]);
});
