/**
 * Another context as an initiator sees it: its root, and what was mapped of its memory.
 *
 * A piece of the peer's memory is mapped once, however many regions, rings and pointers lie in it, and unmapped when
 * the last of them is gone. What was resolved from a key is kept, and dropped when the key is found revoked.
 */

import { Mapping } from '../core/mapped-memory.ts';
import type { CompletionRing } from './completion-ring.ts';
import { ROOT_BYTES, Root } from './context-root.ts';
import type { Attachment, EmulatorFabric } from './emulator-fabric.ts';
import { type FoundRegion, holds } from './region-table.ts';

/** A piece of the peer's memory, mapped here, and how many use it. */
export interface Attached {
  readonly mapping: Mapping;
  readonly handle: number;
  readonly attachment: Attachment | undefined;
  users: number;
}

/** A region of the peer, as the data path wants it. */
export class PeerRegion {
  readonly key: number;
  readonly use: number;
  readonly address: number;
  readonly length: number;
  readonly access: number;
  readonly pd: number;
  readonly mapping: Mapping;
  readonly attached: Attached;
  /** An address plus this is a place in `mapping`. */
  readonly shift: number;
  /** It is unmapped: a queue pair that has kept it asks for the key again. */
  gone = false;
  readonly #words: Int32Array;
  readonly #slot: number;

  constructor(entry: FoundRegion, attached: Attached) {
    this.#words = entry.words;
    this.#slot = entry.slot;
    this.key = entry.key;
    this.use = entry.use;
    this.address = entry.address;
    this.length = entry.length;
    this.access = entry.access;
    this.pd = entry.pd;
    this.attached = attached;
    this.mapping = attached.mapping;
    this.shift = entry.offset - entry.address;
  }

  /** Whether its key still names it. */
  get isHeld(): boolean {
    return holds(this.#words, this.#slot, this.key, this.use);
  }

  /** Whether `length` bytes at `address` lie in the region, whatever the numbers are. */
  contains(address: number, length: number): boolean {
    const at = address - this.address;
    return at >= 0 && length <= this.length && at <= this.length - length;
  }
}

export class Peer {
  readonly member: number;
  readonly root: Root;
  readonly #fabric: EmulatorFabric;
  /** The root, and the parts that its tables have besides. */
  readonly #rootAttachments: readonly Attachment[];
  /** This context's own memory by handle: a queue pair that is connected to its own context needs no second mapping. */
  readonly #own: ReadonlyMap<number, Mapping> | undefined;
  readonly #attached = new Map<number, Attached>();
  readonly #regions = new Map<number, PeerRegion>();
  /** Regions that were looked up since all known ones were last looked at. */
  #lookedUp = 0;

  /** `undefined` if no device is open there. */
  static open(fabric: EmulatorFabric, member: number, own: ReadonlyMap<number, Mapping>): Peer | undefined {
    if (!Number.isInteger(member) || member < 0 || member >= fabric.size) return undefined;
    const found = fabric.root(member);
    // One of another version may be shorter.
    if (found === undefined || found.byteLength < ROOT_BYTES) return undefined;
    let attachment: Attachment;
    try {
      attachment = fabric.attach(member, found.handle, found.byteLength);
    } catch {
      // The member closed its device between the two steps.
      return undefined;
    }
    const attachments = [attachment];
    const root = new Root(attachment.buffer, (handle, byteLength) => {
      try {
        attachments.push(fabric.attach(member, handle, byteLength));
      } catch {
        return undefined;
      }
      return attachments.at(-1)!.buffer;
    });
    if (root.isValid) return new Peer(fabric, member, root, attachments, member === fabric.member ? own : undefined);
    attachment.release();
    return undefined;
  }

  private constructor(
    fabric: EmulatorFabric,
    member: number,
    root: Root,
    attachments: readonly Attachment[],
    own: ReadonlyMap<number, Mapping> | undefined,
  ) {
    this.#fabric = fabric;
    this.member = member;
    this.root = root;
    this.#rootAttachments = attachments;
    this.#own = own;
  }

  /** The region that a key names, as long as it does. Mapped at first use. */
  region(key: number): PeerRegion | undefined {
    const known = this.#regions.get(key);
    if (known?.isHeld) return known;
    if (known !== undefined) {
      this.#regions.delete(key);
      this.detach(known.attached);
    }
    this.#dropRevoked();
    const entry = this.root.regions.find(key);
    if (entry === undefined || entry.handle < 0) return undefined;
    const attached = this.attach(entry.handle, entry.memoryBytes);
    if (attached === undefined) return undefined;
    const region = new PeerRegion(entry, attached);
    this.#regions.set(key, region);
    return region;
  }

  /** Maps memory of the peer, or counts one more user of what is mapped; `undefined` if it is gone. */
  attach(handle: number, byteLength: number): Attached | undefined {
    let attached = this.#attached.get(handle);
    if (attached === undefined) {
      const own = this.#own?.get(handle);
      if (own !== undefined) attached = { mapping: own, handle, attachment: undefined, users: 0 };
      else {
        let attachment: Attachment;
        try {
          attachment = this.#fabric.attach(this.member, handle, byteLength);
        } catch {
          return undefined;
        }
        attached = { mapping: new Mapping(attachment.buffer), handle, attachment, users: 0 };
      }
      this.#attached.set(handle, attached);
    }
    attached.users++;
    return attached;
  }

  /** The end of one use. */
  detach(attached: Attached): void {
    if (--attached.users > 0) return;
    this.#attached.delete(attached.handle);
    attached.attachment?.release();
  }

  /** Unmaps what a key names if nothing else uses it: its next use, if there is one, maps it again. */
  forget(key: number): void {
    const region = this.#regions.get(key);
    if (region === undefined || region.attached.users > 1) return;
    this.#regions.delete(key);
    region.gone = true;
    this.detach(region.attached);
  }

  /** Tells the owner that something of its own needs attention. */
  callAttention(): void {
    this.root.callAttention();
    this.#fabric.wake(this.member);
  }

  /** The peer has asked to be woken by the queue of this ring, and something has come. */
  wakeFor(ring: CompletionRing): void {
    if (ring.announces) this.root.announce();
    this.#fabric.wake(this.member);
  }

  close(): void {
    for (const { attachment } of this.#attached.values()) attachment?.release();
    this.#attached.clear();
    this.#regions.clear();
    for (const attachment of this.#rootAttachments) attachment.release();
  }

  /**
   * While there are few regions, this is done at each lookup; of many, each time that a 64th of them has come, so that
   * a lookup costs some looks, however many are known.
   */
  #dropRevoked(): void {
    if (64 * ++this.#lookedUp < this.#regions.size) return;
    this.#lookedUp = 0;
    for (const [key, region] of this.#regions) {
      if (region.isHeld) continue;
      this.#regions.delete(key);
      this.detach(region.attached);
    }
  }
}
