/**
 * How long a message takes from adapter to adapter, and what it has to wait for on its way.
 *
 *     memory → bus → adapter (send) → link out → leaf (→ uplink → spine → leaf) → link in → adapter (receive) → bus →
 *     memory
 *
 * Every part is a resource that one message has at a time, in the order in which messages come to it; what is kept of a
 * part is the time from which it is free. The way of a message is reserved in two steps, each an event: at the sender
 * (`depart`), and when its first packet comes to the receiver (`arrive`), so that messages of several senders queue up
 * there in the order of their coming.
 *
 * Adapters and switches go round their connections packet by packet. So a message of one packet does not wait for all
 * of a longer message, but for one packet of it, and the longer message is delayed by it (`Parts`).
 *
 * A packet is stored by each adapter before it is passed on; the rest of a longer message follows at the pace of the
 * slowest part (`tailGap`). So a message of n bytes that meets no other takes
 *
 *     send + fetch + p·readGap + (latency + hops·switch + p·outGap) + receive + p·writeGap + (n − p)·max(gaps),   p
 *     = min(n, packet)
 *
 * Adapters stream. While bytes of a list's entry are on the bus, the next entry begins; so a step that has k more
 * entries for its bytes takes max(k·entry, bytes·gap), not the sum, and the first packet waits for its share of them
 * only. Where entries are what takes longer, they set the pace of the rest, as a gap of k·entry/n would.
 */
import type { Fabric } from './fabric-numbers.ts';

/** Parts of one kind, and from when on each is free. */
class Parts {
  readonly #free: Float64Array;
  /** The same, if only messages of one packet are looked at. */
  readonly #freeOfShort: Float64Array;
  /** How long a packet of a longer message takes. */
  readonly #packetTime: number;

  constructor(count: number, packetTime: number) {
    this.#free = new Float64Array(count);
    this.#freeOfShort = new Float64Array(count);
    this.#packetTime = packetTime;
  }

  /** From when on it is worth while to ask for a part. */
  freeFor(part: number, isShort: boolean): number {
    return isShort ? Math.min(this.#free[part], this.#freeOfShort[part]) : this.#free[part];
  }

  /** When a message that comes at `when` gets the part. */
  startOf(part: number, when: number, isShort: boolean): number {
    const start = Math.max(when, this.#free[part]);
    return isShort ? Math.min(start, Math.max(when + this.#packetTime, this.#freeOfShort[part])) : start;
  }

  take(part: number, start: number, time: number, isShort: boolean): void {
    this.#free[part] = Math.max(this.#free[part], start) + time;
    if (isShort) this.#freeOfShort[part] = start + time;
  }

  /** @returns when it gets the part, and has it for `time` */
  reserve(part: number, when: number, time: number, isShort: boolean): number {
    const start = this.startOf(part, when, isShort);
    this.take(part, start, time, isShort);
    return start;
  }
}

/** What of the time of a message's entries is its first packet's: all of it, if it is the only one. */
function share(time: number, first: number, bytes: number): number {
  return first === bytes ? time : (time * first) / bytes;
}

export class Network {
  readonly fabric: Fabric;
  readonly #ranksOfNode: number;
  /**
   * Of each node: its adapter, sending and receiving, which may be one processor, and its bus, where there is one for
   * both ways.
   */
  readonly #sending: Parts;
  readonly #receiving: Parts;
  readonly #bus: Parts | undefined;
  /** From when on each node's adapter can carry out an atomic. */
  readonly #atomics: Float64Array;
  /** Uplinks of the leaves, up and down. */
  readonly #up: Parts;
  readonly #down: Parts;
  readonly #tailGap: number;
  readonly #outGap: number;
  readonly #inGap: number;

  constructor(fabric: Fabric, ranks: number) {
    this.fabric = fabric;
    this.#ranksOfNode = fabric.node.ranks;
    const nodes = Math.ceil(ranks / fabric.node.ranks);
    const leaves = Math.ceil(nodes / fabric.switch.leafPorts);
    const { adapter, bus, link } = fabric;
    this.#outGap = Math.max(bus.readGap, link.outGap);
    this.#inGap = Math.max(bus.writeGap, link.inGap);
    this.#tailGap = Math.max(this.#outGap, this.#inGap);
    const { packet } = adapter;
    this.#sending = new Parts(nodes, packet * this.#outGap);
    this.#receiving = adapter.single === 1 ? this.#sending : new Parts(nodes, packet * this.#inGap);
    this.#bus = bus.shared === 1 ? new Parts(nodes, packet * Math.max(bus.readGap, bus.writeGap)) : undefined;
    this.#atomics = new Float64Array(nodes);
    this.#up = new Parts(leaves * fabric.switch.uplinks, packet * link.outGap);
    this.#down = new Parts(leaves * fabric.switch.uplinks, packet * link.outGap);
  }

  nodeOf(rank: number): number {
    return Math.floor(rank / this.#ranksOfNode);
  }

  /** Until when the adapter of a rank is busy sending what it was given. */
  freeToSend(rank: number, bytes: number): number {
    return this.#sending.freeFor(this.nodeOf(rank), this.isShort(bytes));
  }

  /** Reserves the adapter of a rank for a step that is no message of a queue pair's. @returns when it is through */
  step(now: number, rank: number, time: number): number {
    const node = this.nodeOf(rank);
    const start = this.#sending.startOf(node, now, true);
    this.#sending.take(node, start, time, true);
    return start + time;
  }

  /** Has the adapter of a rank do what follows a message, which delays later ones only. @returns when it is through */
  follow(now: number, rank: number, time = 0): number {
    return time > 0 ? this.#receiving.reserve(this.nodeOf(rank), now, time, true) + time : now;
  }

  /** Whether a message is one packet. */
  isShort(bytes: number): boolean {
    return bytes <= this.fabric.adapter.packet;
  }

  /**
   * Reserves a message its way out of the sender. @returns when its first packet has come to the receiving adapter
   * @param entries that are gathered from memory; 0: the data lies in the request
   */
  depart(now: number, from: number, to: number, bytes: number, entries: number): number {
    const { adapter, link, switch: tree } = this.fabric;
    const source = this.nodeOf(from);
    const target = this.nodeOf(to);
    const isShort = this.isShort(bytes);
    const out = this.#send(now, source, bytes, entries);
    if (source === target) return out + adapter.loopback;
    const sourceLeaf = Math.floor(source / tree.leafPorts);
    const targetLeaf = Math.floor(target / tree.leafPorts);
    const leaf = this.#leafOf(out, bytes);
    if (sourceLeaf === targetLeaf) return leaf;
    if (tree.levels !== undefined) return leaf + this.#aboveLeaves(source, target);
    // The way is chosen by the target, as by a subnet manager's tables.
    const way = target % tree.uplinks;
    const time = bytes * link.outGap;
    const up = this.#up.reserve(sourceLeaf * tree.uplinks + way, leaf, time, isShort);
    const down = this.#down.reserve(targetLeaf * tree.uplinks + way, up + tree.latency, time, isShort);
    return down + tree.latency;
  }

  /**
   * Reserves a datagram for a group its way out of the sender: switches copy it, so each link carries it once.
   * @param nodes of the group's members
   * @param group chooses the way up, as a subnet manager's tables do
   * @param arrivals by place in `nodes`, when it has come to the adapter there
   */
  departToGroup(
    now: number,
    from: number,
    nodes: readonly number[],
    group: number,
    bytes: number,
    entries: number,
    arrivals: number[],
  ): void {
    const { adapter, link, switch: tree } = this.fabric;
    const source = this.nodeOf(from);
    const sourceLeaf = Math.floor(source / tree.leafPorts);
    const out = this.#send(now, source, bytes, entries);
    const leaf = this.#leafOf(out, bytes);
    const isShort = this.isShort(bytes);
    const way = group % tree.uplinks;
    const time = bytes * link.outGap;
    const downs = new Map<number, number>();
    let up: number | undefined;
    for (let i = 0; i < nodes.length; i++) {
      const targetLeaf = Math.floor(nodes[i] / tree.leafPorts);
      if (nodes[i] === source) arrivals[i] = out + adapter.loopback;
      else if (targetLeaf === sourceLeaf) arrivals[i] = leaf;
      else if (tree.levels !== undefined) arrivals[i] = leaf + this.#aboveLeaves(source, nodes[i]);
      else {
        up ??= this.#up.reserve(sourceLeaf * tree.uplinks + way, leaf, time, isShort);
        let down = downs.get(targetLeaf);
        if (down === undefined) {
          down = this.#down.reserve(targetLeaf * tree.uplinks + way, up + tree.latency, time, isShort);
          downs.set(targetLeaf, down);
        }
        arrivals[i] = down + tree.latency;
      }
    }
  }

  /** What the further entries of a list take an adapter. */
  #further(entries: number): number {
    return entries > 1 ? (entries - 1) * this.fabric.adapter.entry : 0;
  }

  /** Reserves a message its turn at the sender's adapter. @returns when its first packet leaves */
  #send(now: number, source: number, bytes: number, entries: number): number {
    const { adapter, bus } = this.fabric;
    const isShort = this.isShort(bytes);
    let start = this.#sending.startOf(source, now, isShort);
    if (this.#bus !== undefined) start = this.#bus.reserve(source, start, bytes * bus.readGap, isShort);
    const more = this.#further(entries);
    this.#sending.take(source, start, adapter.send + Math.max(more, bytes * this.#outGap), isShort);
    const first = Math.min(bytes, adapter.packet);
    const gathered = share(more, first, bytes);
    return start + adapter.send + (entries > 0 ? bus.fetch : 0) + Math.max(gathered, first * bus.readGap);
  }

  /** When the first packet of what leaves at `out` is through the leaf switch. */
  #leafOf(out: number, bytes: number): number {
    const { adapter, link, switch: tree } = this.fabric;
    return out + link.latency + Math.min(bytes, adapter.packet) * link.outGap + tree.latency;
  }

  /**
   * Reserves a message whose first packet has come its way into the receiver.
   * @param entries that it is scattered to
   * @param gathered entries that it was gathered from
   * @returns when its last byte is in memory
   */
  arrive(now: number, to: number, bytes: number, entries = 1, gathered = 1): number {
    const { adapter, bus } = this.fabric;
    const target = this.nodeOf(to);
    const first = Math.min(bytes, adapter.packet);
    const isShort = this.isShort(bytes);
    const start = this.#receiving.startOf(target, now, isShort);
    const { receive } = adapter;
    const more = this.#further(entries);
    this.#receiving.take(target, start, receive + Math.max(more, bytes * this.#inGap), isShort);
    const slowest = Math.max(more, this.#further(gathered));
    const scattered = share(more, first, bytes);
    const rest = slowest - share(slowest, first, bytes);
    const last =
      start + receive + Math.max(scattered, first * bus.writeGap) + Math.max(rest, (bytes - first) * this.#tailGap);
    if (this.#bus === undefined) return last;
    // Reads and writes of memory take the bus in turns, packet by packet: when those before it are through, the rest of
    // this one is there too, unless it has not come yet.
    const onBus = this.#bus.reserve(target, start, bytes * bus.writeGap, isShort);
    return Math.max(last, onBus + receive + Math.max(more, bytes * bus.writeGap));
  }

  /** Reserves an atomic its turn at the adapter of a rank. @returns when it has been carried out */
  atomic(now: number, rank: number): number {
    const node = this.nodeOf(rank);
    const done = Math.max(now, this.#atomics[node]) + this.fabric.adapter.atomic;
    this.#atomics[node] = done;
    return done;
  }

  /** How long it takes until a rank's adapter knows that another's has taken in a request. */
  acknowledgement(from: number, to: number): number {
    const { adapter, link } = this.fabric;
    const source = this.nodeOf(from);
    const target = this.nodeOf(to);
    if (source === target) return adapter.acknowledge + adapter.loopback;
    return adapter.acknowledge + link.latency + this.#switchesOf(source, target);
  }

  /** How long a packet without data takes from adapter to adapter. */
  flight(from: number, to: number): number {
    const source = this.nodeOf(from);
    const target = this.nodeOf(to);
    if (source === target) return this.fabric.adapter.loopback;
    return this.fabric.link.latency + this.#switchesOf(source, target);
  }

  #aboveLeaves(source: number, target: number): number {
    const { latency, further = latency } = this.fabric.switch;
    return this.#above(source, target) * further;
  }

  #switchesOf(source: number, target: number): number {
    const { latency, further } = this.fabric.switch;
    const above = this.#above(source, target);
    return further === undefined ? (1 + above) * latency : latency + above * further;
  }

  /** Switches above the leaves on the way: two for each level that a message rises, less one at the top. */
  #above(source: number, target: number): number {
    const { leafPorts, levels } = this.fabric.switch;
    let from = Math.floor(source / leafPorts);
    let to = Math.floor(target / leafPorts);
    // A tree of two levels joins all leaves.
    if (levels === undefined) return from === to ? 0 : 2;
    let above = 0;
    for (; from !== to; above += 2) {
      from = Math.floor(from / leafPorts);
      to = Math.floor(to / leafPorts);
    }
    return above;
  }
}
