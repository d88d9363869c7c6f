/**
 * The barrier protocol of an adapter (verbs/adapter-barrier.ts) as firmware of a modelled one: events on the adapter's
 * processor. A message is a small packet that the adapter has ready for each peer, so it claims no buffer, and passes
 * all requests that wait (report on NIC-based barriers, §6). Links are not reserved for it: it is too short to be in
 * anybody's way. Packets are lost and delayed by the fabric's faults, each by itself, as datagrams are.
 *
 * Nacks are no progress: they are not counted as something under way, so a barrier that a rank never enters is found
 * out as a deadlock (`Simulator.askedInVain`).
 */
import type { AdapterBarrier, AdapterBarrierInit, BarrierSchedule } from '../../verbs/adapter-barrier.ts';
import type { Fabric } from './fabric-numbers.ts';
import type { Faults } from './faults.ts';
import type { Network } from './network.ts';
import type { Cpu, Simulator } from './simulator.ts';

/** Nacks come at most so many times `nackAfter` apart. */
const MOST_BACK_OFF = 8;

const MESSAGE = 0;
const AGAIN = 1;
const NACK = 2;

/** A group that a member has left: nothing is for it any more. */
const PARTED = Symbol('parted');

/** A member's context, and the fabric around it. */
interface Around {
  readonly member: number;
  readonly cpu: Cpu;
  readonly parking: { ring(): void };
  readonly fabric: Fabric;
  readonly simulator: Simulator;
  readonly shared: { readonly network: Network; readonly faults: Faults; readonly barriers: BarrierGroups };
}

/** A message of a barrier: who sent it, the tag of its step, of which barrier it is, and its kind. */
type Message = readonly [source: number, tag: number, number: number, kind: number];

/**
 * The groups that each context is in, by their numbers, and messages for groups that are not there yet: members make a
 * group one after the other, and the first may have entered a barrier by then. Without these messages, that barrier
 * would take `nackAfter`. A Nack is not kept: the member that it asks has told nobody yet, and will.
 */
export class BarrierGroups {
  /** By member and group: the barrier, the messages that wait for it, or `PARTED`. */
  readonly #groups: (Map<number, ModelledBarrier | Message[] | typeof PARTED> | undefined)[] = [];

  join(member: number, group: number, barrier: ModelledBarrier): void {
    const groups = this.#of(member);
    const early = groups.get(group);
    groups.set(group, barrier);
    if (Array.isArray(early)) for (const message of early) barrier.take(...message);
  }

  leave(member: number, group: number): void {
    this.#of(member).set(group, PARTED);
  }

  arrive(member: number, group: number, message: Message): void {
    const groups = this.#of(member);
    const at = groups.get(group);
    if (at instanceof ModelledBarrier) at.take(...message);
    else if (Array.isArray(at)) at.push(message);
    else if (at === undefined && message[3] !== NACK) groups.set(group, [message]);
  }

  #of(member: number): Map<number, ModelledBarrier | Message[] | typeof PARTED> {
    return (this.#groups[member] ??= new Map());
  }
}

export class ModelledBarrier implements AdapterBarrier {
  readonly statistics = { barriers: 0, packets: 0, nacks: 0, futile: 0, resent: 0, duplicates: 0 };
  readonly #context: Around;
  readonly #group: number;
  readonly #members: readonly number[];
  readonly #rank: number;
  readonly #schedule: BarrierSchedule;
  /** Microseconds. */
  readonly #nackAfter: number;
  /** By peer and tag: the step that waits for that message, and the one that sends it. */
  readonly #waits = new Map<number, number>();
  readonly #sends = new Map<number, number>();
  /** By step that waits: the last barrier for which its message has come. */
  readonly #came: Int32Array;
  /** The barrier that this member is in, or was in last. */
  #number = 0;
  /** The next step of its schedule. */
  #at: number;
  /** The last barrier that is complete here, as the processor will find it, and as it has found it. */
  #done = 0;
  #told = 0;
  #closed = false;

  constructor(context: Around, { group, members, rank, schedule, nackAfter }: AdapterBarrierInit) {
    this.#context = context;
    this.#group = group;
    this.#members = members;
    this.#rank = rank;
    this.#schedule = schedule;
    this.#nackAfter = 1000 * nackAfter;
    this.#came = new Int32Array(schedule.length);
    this.#at = schedule.length;
    for (const [i, { sends, peer, tag }] of schedule.entries())
      (sends ? this.#sends : this.#waits).set(keyOf(peer, tag), i);
    context.shared.barriers.join(context.member, group, this);
  }

  enter(): void {
    const { cpu, simulator, fabric, member } = this.#context;
    cpu.spend(fabric.host.post);
    simulator.underWay++;
    simulator.at(cpu.time + (fabric.bus.doorbell ?? 0), member, {
      happen: () => {
        simulator.underWay--;
        this.#begin();
      },
    });
  }

  complete(): number {
    if (this.#told !== this.#done) {
      this.#told = this.#done;
      const { cpu, fabric } = this.#context;
      cpu.fetched++;
      cpu.spend(fabric.host.completion);
    }
    return this.#told;
  }

  awaited(): number {
    return this.#schedule[this.#at]?.peer ?? -1;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#context.shared.barriers.leave(this.#context.member, this.#group);
  }

  get #isDead(): boolean {
    return this.#closed || this.#context.cpu.dead;
  }

  #begin(): void {
    if (this.#isDead) return;
    this.#number = (this.#number + 1) | 0;
    this.#at = 0;
    this.#context.simulator.changed();
    this.#advance();
    this.#watch(this.#number, this.#nackAfter);
  }

  #advance(): void {
    const schedule = this.#schedule;
    while (this.#at < schedule.length) {
      const { sends, peer, tag } = schedule[this.#at];
      if (sends) this.#send(peer, tag, this.#number, MESSAGE);
      else if (((this.#came[this.#at] - this.#number) | 0) < 0) return;
      this.#at++;
    }
    const { simulator, fabric, member } = this.#context;
    simulator.underWay++;
    simulator.at(simulator.now + (fabric.bus.event ?? 0), member, {
      happen: () => {
        simulator.underWay--;
        this.#completed(this.#number);
      },
    });
  }

  #completed(number: number): void {
    if (this.#isDead) return;
    this.#done = number;
    this.statistics.barriers++;
    const { simulator, cpu, parking } = this.#context;
    simulator.changed();
    parking.ring();
    cpu.ring();
  }

  /** Sends a packet, when the adapter's processor comes to it. */
  #send(peer: number, tag: number, number: number, kind: number): void {
    const { shared, simulator, fabric, member } = this.#context;
    const { network, faults } = shared;
    const target = this.#members[peer];
    const gone = network.step(simulator.now, member, fabric.adapter.barrierSend!);
    this.statistics.packets++;
    if (faults.drawLoss()) {
      simulator.lost();
      return;
    }
    const counts = kind !== NACK;
    if (counts) simulator.underWay++;
    simulator.at(gone + network.flight(member, target) + faults.drawDelay(), member, {
      happen: () => {
        if (counts) simulator.underWay--;
        shared.barriers.arrive(target, this.#group, [this.#rank, tag, number, kind]);
      },
    });
  }

  /** A packet has come to the adapter. */
  take(source: number, tag: number, number: number, kind: number): void {
    const { shared, simulator, fabric, member } = this.#context;
    if (this.#isDead) return;
    const counts = kind !== NACK;
    if (counts) simulator.underWay++;
    simulator.at(shared.network.step(simulator.now, member, fabric.adapter.barrierReceive!), member, {
      happen: () => {
        if (counts) simulator.underWay--;
        if (this.#isDead) return;
        if (kind === NACK) this.#asked(source, tag, number);
        else this.#arrived(source, tag, number);
      },
    });
  }

  #arrived(source: number, tag: number, number: number): void {
    const step = this.#waits.get(keyOf(source, tag))!;
    if (((number - this.#came[step]) | 0) <= 0) {
      this.statistics.duplicates++;
      return;
    }
    this.#came[step] = number;
    this.#context.simulator.changed();
    if (this.#at < this.#schedule.length) this.#advance();
  }

  #asked(source: number, tag: number, number: number): void {
    const step = this.#sends.get(keyOf(source, tag))!;
    const ahead = (number - this.#number) | 0;
    if (ahead < 0 || (ahead === 0 && step < this.#at)) {
      this.statistics.resent++;
      this.#send(source, tag, number, AGAIN);
    } else this.statistics.futile++;
  }

  /** Looks after a while whether the barrier is over, and asks for the message that it waits for if not. */
  #watch(number: number, after: number): void {
    const { simulator, member } = this.#context;
    const isOver = (): boolean => this.#isDead || this.#number !== number || this.#at === this.#schedule.length;
    if (isOver()) return;
    simulator.atDeadline(simulator.now + after, member, {
      get isOver() {
        return isOver();
      },
      happen: () => {
        if (isOver()) return;
        const { peer, tag } = this.#schedule[this.#at];
        this.statistics.nacks++;
        this.#send(peer, tag, number, NACK);
        this.#watch(number, Math.min(2 * after, MOST_BACK_OFF * this.#nackAfter));
        simulator.askedInVain();
      },
    });
  }
}

function keyOf(peer: number, tag: number): number {
  return 64 * peer + tag;
}
