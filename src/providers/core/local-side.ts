/** The initiator's own memory that a request names: checked as its adapter would check it. */
import { WcStatus } from '../../verbs/completion-queue.ts';
import { type WorkRequestRing, WrField, WrField64 } from '../../verbs/work-request-ring.ts';
import { Mapping, Pieces } from './mapped-memory.ts';
import { type MappedMemory, RegionCore } from './verbs-objects.ts';

/** A region of memory that this process has mapped. */
export abstract class MappedRegion<
  M extends MappedMemory = MappedMemory,
  Pd extends { children: number } = { children: number },
> extends RegionCore<M, Pd> {
  /** Whether `length` bytes at `address` lie in the region, and still in its buffer, which may have been detached. */
  contains(address: number, length: number): boolean {
    const at = address - this.address;
    return (
      at >= 0 &&
      length <= this.length &&
      at <= this.length - length &&
      address - this.memory.address + length <= this.memory.mapping.u8.length
    );
  }

  /** Whether an entry of a request or receive may name these bytes. @param right bits of `Access` that it needs */
  allows(pd: object, right: number, address: number, length: number): boolean {
    return this.pd === pd && (this.access & right) === right && this.contains(address, length);
  }
}

/** A word that a request waits for. */
export interface AwaitedWord {
  readonly region: MappedRegion;
  /** Its place in the region's memory, in 32-bit words. */
  readonly at: number;
}

export class LocalSide {
  /** What the last request that was looked at gathers from or scatters to. */
  readonly pieces: Pieces;
  readonly #regions: ReadonlyMap<number, MappedRegion>;
  readonly #pd: object;
  readonly #ring: WorkRequestRing;
  #ringMapping: Mapping | undefined;
  /** The region that was named last. */
  #region: MappedRegion | undefined;

  /**
   * @param regions of the context, by local key
   * @param pieces absent: its own
   */
  constructor(
    regions: ReadonlyMap<number, MappedRegion>,
    pd: object,
    ring: WorkRequestRing,
    pieces: Pieces | undefined = undefined,
  ) {
    this.#regions = regions;
    this.#pd = pd;
    this.#ring = ring;
    this.pieces = pieces ?? new Pieces(Math.max(1, ring.maxSge), this.ringMapping);
  }

  /** Of the ring's buffer, which is another one when the ring has grown. */
  get ringMapping(): Mapping {
    const { buffer } = this.#ring;
    if (this.#ringMapping?.buffer !== buffer) this.#ringMapping = new Mapping(buffer);
    return this.#ringMapping;
  }

  /**
   * Resolves what the request gathers from or scatters to into `pieces`.
   * @param right what the regions must allow besides reading
   * @returns a `WcStatus`
   */
  find(w: number, right: number): number {
    const { pieces } = this;
    const ring = this.#ring;
    const { u32 } = ring;
    pieces.clear();
    const inline = u32[w + WrField.INLINE_LENGTH];
    if (inline > 0) {
      pieces.add(this.ringMapping, ring.inlineByte(w), inline);
      return WcStatus.SUCCESS;
    }
    const n = u32[w + WrField.NUM_SGE];
    for (let i = 0; i < n; i++) {
      const s = ring.sgeWords(w, i);
      const length = u32[s + 2];
      if (length === 0) continue;
      const address = ring.f64[s >>> 1];
      const region = this.#find(u32[s + 3]);
      if (region === undefined || !region.allows(this.#pd, right, address, length)) return WcStatus.LOC_PROT_ERR;
      const { memory } = region;
      pieces.add(memory.mapping, address - memory.address, length);
    }
    return WcStatus.SUCCESS;
  }

  /** The word that the wait in slot `w` waits for. `undefined` if its key or its address is wrong. */
  awaited(w: number): AwaitedWord | undefined {
    const ring = this.#ring;
    const address = ring.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS];
    const region = this.#find(ring.u32[w + WrField.RKEY]);
    // The memory begins at the beginning of a page, so its word is aligned in the buffer, too.
    if (region === undefined || address % 4 !== 0 || !region.allows(this.#pd, 0, address, 4)) return undefined;
    return { region, at: (address - region.memory.address) / 4 };
  }

  #find(lkey: number): MappedRegion | undefined {
    let region = this.#region;
    if (region !== undefined && region.lkey === lkey && region.live) return region;
    region = this.#regions.get(lkey);
    if (region !== undefined) this.#region = region;
    return region;
  }
}
