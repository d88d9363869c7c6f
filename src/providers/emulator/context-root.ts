/**
 * The root of a context: the shared memory where peers find its queue pairs and memory regions.
 *
 *     byte 0       header: MAGIC, LAYOUT, OPEN; on lines of their own ATTENTION, NEWS
 *     byte 512     where the parts of the tables are that do not lie here (table-parts.ts)
 *     byte 1024    the multicast groups that its queue pairs are attached to
 *     byte 4096    the beginning of the queue pair table
 *     then         the beginning of the region table
 *
 * A peer counts ATTENTION up when it has changed something that the owner must see to: it has moved a queue pair to
 * ERR, passed a watermark, or overrun a completion queue. The object concerned says what it was, so nothing is lost
 * when many come at once; the owner looks at ATTENTION whenever it polls, which costs a load.
 *
 * If a completion queue announces its wake-ups, the side that takes its wish to be woken (completion-ring.ts) counts
 * NEWS up, and then rings.
 */
import { loadAcquire } from '../../memory-model.ts';
import { GroupTable } from './group-table.ts';
import { QP_TABLE_BYTES, QpTable } from './qp-table.ts';
import { REGION_TABLE_BYTES, RegionTable } from './region-table.ts';
import { Parts } from './table-parts.ts';

const MAGIC = 0x746f6f72;
/** Raised whenever anything in the memory that contexts share changes its place or meaning. */
const LAYOUT = 6;
const HEADER_BYTES = 4096;
const PARTS_AT = 512;
const GROUPS_AT = 1024;
export const ROOT_BYTES = HEADER_BYTES + QP_TABLE_BYTES + REGION_TABLE_BYTES;

const HeaderWord = Object.freeze({ MAGIC: 0, LAYOUT: 1, OPEN: 2, ATTENTION: 32, NEWS: 64 });

export class Root {
  readonly queuePairs: QpTable;
  readonly regions: RegionTable;
  readonly groups: GroupTable;
  readonly #words: Int32Array;

  /** @param attach maps memory of the root's owner, if it is still there; the owner itself has no need to */
  constructor(
    buffer: ArrayBufferLike,
    attach: (handle: number, byteLength: number) => ArrayBufferLike | undefined = () => undefined,
  ) {
    this.#words = new Int32Array(buffer, 0, HEADER_BYTES / 4);
    this.groups = new GroupTable(buffer, GROUPS_AT);
    const parts = new Parts(buffer, PARTS_AT, attach);
    this.queuePairs = new QpTable(buffer, HEADER_BYTES, parts);
    this.regions = new RegionTable(buffer, HEADER_BYTES + QP_TABLE_BYTES, parts);
  }

  /** Owner: everything is in place; peers may look. */
  open(): void {
    const words = this.#words;
    Atomics.store(words, HeaderWord.LAYOUT, LAYOUT);
    Atomics.store(words, HeaderWord.MAGIC, MAGIC);
    Atomics.store(words, HeaderWord.OPEN, 1);
  }

  close(): void {
    Atomics.store(this.#words, HeaderWord.OPEN, 0);
  }

  get isOpen(): boolean {
    return Atomics.load(this.#words, HeaderWord.OPEN) === 1;
  }

  /** Whether this is a root of this layout. */
  get isValid(): boolean {
    const words = this.#words;
    return Atomics.load(words, HeaderWord.MAGIC) === MAGIC && Atomics.load(words, HeaderWord.LAYOUT) === LAYOUT;
  }

  /** Owner: changes when something must be seen to. */
  get attention(): number {
    return loadAcquire(this.#words, HeaderWord.ATTENTION);
  }

  /** Owner: changes when a completion queue that announces it has something new. */
  get news(): number {
    return loadAcquire(this.#words, HeaderWord.NEWS);
  }

  announce(): void {
    Atomics.add(this.#words, HeaderWord.NEWS, 1);
  }

  callAttention(): void {
    Atomics.add(this.#words, HeaderWord.ATTENTION, 1);
  }
}
