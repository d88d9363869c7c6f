/**
 * Copies of the control memory of ranks on several hosts become alike, however what they say to each other is delayed,
 * and whoever ends meanwhile.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Control,
  controlBytes,
  declareFailed,
  FailKind,
  formatControl,
  Header,
  RankState,
  Slot,
  viewControl,
} from '../../src/job/control-region.ts';
import { ROW_WORDS } from '../../src/providers/emulator/bells.ts';
import { ControlCopy, type Message } from '../../src/start/control-copy.ts';

function makeControl(rank: number, size: number, shared = false): Control {
  const contents = shared ? 'all' : { rank };
  const control = viewControl(new SharedArrayBuffer(controlBytes(size, contents)), size, contents);
  formatControl(control);
  return control;
}

const stateOf = ({ slots, slotWords }: Control, rank: number): number => slots[rank * slotWords + Slot.STATE];
const connection = ({ connections, connectionAt }: Control, from: number, to: number): number =>
  connections[connectionAt(from, to)];
const failKindOf = ({ slots, slotWords }: Control, rank: number): number => slots[rank * slotWords + Slot.FAIL_KIND];

/** Ranks and the connections between them, on which everything takes as long as the test likes. */
class Network {
  readonly size: number;
  readonly leaderOf: readonly number[];
  readonly controls: Control[];
  readonly copies: ControlCopy[];
  /** What is under way, by sender and receiver; `hello` comes before all else of a member. */
  readonly #wires = new Map<string, (Message | 'hello')[]>();
  /** Members whose connection is there. */
  readonly connected = new Set<number>();
  readonly dead = new Set<number>();
  /** Members that have said hello. */
  readonly #met = new Set<number>();

  /** @param leaderOf the first rank of each rank's place; a rank of its place has its control memory, and its copy */
  constructor(size: number, leaderOf?: readonly number[]) {
    this.size = size;
    this.leaderOf = leaderOf ?? Array.from({ length: size }, (_, rank) => rank);
    const made = this.leaderOf.map((_, rank) => makeControl(rank, size, leaderOf !== undefined));
    this.controls = this.leaderOf.map((leader) => made[leader]);
    const copies = made.map(
      (control, rank) => new ControlCopy(control, rank, (to, message) => this.wire(rank, to).push(message), leaderOf),
    );
    this.copies = this.leaderOf.map((leader) => copies[leader]);
  }

  wire(from: number, to: number): (Message | 'hello')[] {
    const name = `${from} ${to}`;
    if (!this.#wires.has(name)) this.#wires.set(name, []);
    return this.#wires.get(name)!;
  }

  connect(rank: number): void {
    const member = this.leaderOf[rank];
    if (member === 0 || this.dead.has(member) || this.dead.has(0) || this.connected.has(member)) return;
    if (this.copies[member].isFinalized(member)) return;
    this.connected.add(member);
    this.wire(member, 0).push('hello');
    this.copies[member].connected(0);
  }

  /** What a rank itself writes. */
  join(rank: number): void {
    const { header, slots, slotWords } = this.controls[rank];
    if (stateOf(this.controls[rank], rank) !== RankState.ABSENT || this.dead.has(rank)) return;
    slots[rank * slotWords + Slot.PID] = 1000 + rank;
    slots[rank * slotWords + Slot.STATE] = RankState.JOINED;
    header[Header.JOINED]++;
  }

  publish(rank: number, peer: number, number: number): void {
    if (rank === peer || this.dead.has(rank)) return;
    const { connections, connectionAt } = this.controls[rank];
    connections[connectionAt(rank, peer)] = number;
  }

  finalize(rank: number): void {
    const { header, slots, slotWords } = this.controls[rank];
    if (stateOf(this.controls[rank], rank) !== RankState.JOINED || this.dead.has(rank)) return;
    slots[rank * slotWords + Slot.STATE] = RankState.FINALIZED;
    header[Header.FINALIZED]++;
  }

  look(rank: number): void {
    if (!this.dead.has(rank)) this.copies[rank].look();
  }

  deliver(sender: number, receiver: number): boolean {
    const [from, to] = [this.leaderOf[sender], this.leaderOf[receiver]];
    const message = this.wire(from, to).shift();
    if (message === undefined) return false;
    if (this.dead.has(to)) return true;
    if (message !== 'hello') this.copies[to].receive(from, message);
    else if (this.copies[0].mayCome(from)) {
      this.#met.add(from);
      this.copies[0].connected(from);
    }
    return true;
  }

  /** The rank's process ends. What it has said may have come, or be lost with the connection. */
  die(rank: number, comes: boolean): void {
    if (this.dead.has(rank)) return;
    const others = rank === 0 ? [...this.connected] : this.connected.has(rank) ? [0] : [];
    this.dead.add(rank);
    for (const other of others) {
      while (comes && this.deliver(rank, other));
      this.wire(rank, other).length = 0;
      this.wire(other, rank).length = 0;
      const knows = rank === 0 || this.#met.has(rank);
      if (knows && !this.dead.has(other)) this.copies[other].lost(rank);
    }
  }

  /** Everybody has connected, and everything has come. */
  settle(): void {
    for (let member = 1; member < this.size; member++) this.connect(member);
    for (let moved = true; moved; ) {
      moved = false;
      for (let rank = 0; rank < this.size; rank++) this.look(rank);
      for (let from = 0; from < this.size; from++) {
        for (let to = 0; to < this.size; to++) while (this.deliver(from, to)) moved = true;
      }
    }
  }

  get living(): number[] {
    return this.controls.map((_, rank) => rank).filter((rank) => !this.dead.has(rank));
  }
}

/** A rank, another one, and what happens. */
const happening = (size: number) => {
  const rank = fc.integer({ min: 0, max: size - 1 });
  return fc.record({
    what: fc.constantFrom('connect', 'join', 'join', 'publish', 'look', 'look', 'deliver', 'deliver', 'deliver'),
    rank,
    other: rank,
    number: fc.integer({ min: 1, max: 2 ** 24 }),
  });
};

type Happening = ReturnType<typeof happening> extends fc.Arbitrary<infer T> ? T : never;

function happen(network: Network, { what, rank, other, number }: Happening): void {
  if (what === 'connect') network.connect(rank);
  else if (what === 'join') network.join(rank);
  else if (what === 'publish') network.publish(rank, other, number);
  else if (what === 'look') network.look(rank);
  else network.deliver(rank, other);
}

const SIZE = 4;

describe('copies of the control memory', () => {
  test('are alike when everything has come, in whatever order it was said and came', () => {
    fc.assert(
      fc.property(fc.array(happening(SIZE), { maxLength: 120 }), (happenings) => {
        const network = new Network(SIZE);
        for (const one of happenings) happen(network, one);
        network.settle();
        const { controls } = network;
        for (const [mine, control] of controls.entries()) {
          expect(control.header[Header.FAILED]).toBe(0);
          for (const [rank, its] of controls.entries()) {
            expect(stateOf(control, rank)).toBe(stateOf(its, rank));
            expect(control.slots[rank * control.slotWords]).toBe(its.slots[rank * control.slotWords]);
            // What it offers to this one.
            if (rank !== mine) expect(connection(control, rank, mine)).toBe(connection(its, rank, mine));
          }
          const joined = controls.filter((its, rank) => stateOf(its, rank) !== RankState.ABSENT).length;
          expect(control.header[Header.JOINED]).toBe(joined);
        }
      }),
      { numRuns: 300 },
    );
  });

  test.each([[[0, 0, 2, 2, 2]], [[0, 1, 0, 1, 4]], [[0, 0, 0, 3, 3]]])(
    'are alike where ranks share them, by places of the leaders %o',
    (leaderOf) => {
      const size = leaderOf.length;
      fc.assert(
        fc.property(fc.array(happening(size), { maxLength: 120 }), (happenings) => {
          const network = new Network(size, leaderOf);
          for (const one of happenings) happen(network, one);
          network.settle();
          const { controls } = network;
          const joined = controls.filter((its, rank) => stateOf(its, rank) !== RankState.ABSENT).length;
          for (const [mine, control] of controls.entries()) {
            expect([control.header[Header.FAILED], control.header[Header.JOINED]]).toEqual([0, joined]);
            for (const [rank, its] of controls.entries()) {
              expect(stateOf(control, rank)).toBe(stateOf(its, rank));
              if (rank !== mine) expect(connection(control, rank, mine)).toBe(connection(its, rank, mine));
            }
          }
        }),
        { numRuns: 100 },
      );
    },
  );

  test('tell all of the end of a place: its ranks that had not left, and no others', () => {
    const network = new Network(6, [0, 0, 2, 2, 4, 4]);
    for (let rank = 0; rank < 6; rank++) network.join(rank);
    network.settle();
    network.finalize(3);
    network.settle();
    network.die(2, true);
    network.settle();
    const failed = (control: Control): number[] =>
      [0, 1, 2, 3, 4, 5].filter((rank) => control.slots[rank * control.slotWords + Slot.FAILED] !== 0);
    for (const rank of [0, 1, 4, 5]) expect(failed(network.controls[rank])).toEqual([2]);
    // A failure that a rank finds is told to those of all places, and by a place of its own ranks, only once.
    declareFailed(network.controls[5], 4, FailKind.UNREACHABLE, 5);
    network.settle();
    expect(failed(network.controls[1])).toEqual([2, 4]);
    expect(failKindOf(network.controls[0], 4)).toBe(FailKind.UNREACHABLE);
    network.die(0, true);
    expect(failed(network.controls[4])).toEqual([0, 1, 2, 4]);
    expect(network.controls[5].header[Header.DEAF]).toBe(1);
  });

  test('believe of a place only what it says of its own ranks', () => {
    const network = new Network(4, [0, 0, 2, 2]);
    network.settle();
    const [hub] = network.copies;
    for (const from of [0, 1]) hub.receive(2, { from, state: RankState.JOINED, pid: 1 });
    hub.receive(2, { from: 3, state: RankState.JOINED, pid: 7 });
    expect([0, 1, 2, 3].map((rank) => stateOf(network.controls[0], rank))).toEqual([0, 0, 0, RankState.JOINED]);
    for (const nobody of [0, 1, 3]) expect(hub.mayCome(nobody)).toBe(false);
  });

  test('tell all of the end of a rank that had not left, whenever it came, and of nothing else', () => {
    const end = fc.record({ at: fc.nat(120), rank: fc.integer({ min: 0, max: SIZE - 1 }), comes: fc.boolean() });
    fc.assert(
      fc.property(fc.array(happening(SIZE), { maxLength: 120 }), end, (happenings, { at, rank, comes }) => {
        const network = new Network(SIZE);
        for (const one of happenings.slice(0, at)) happen(network, one);
        const known = rank === 0 ? [...network.connected] : network.connected.has(rank) ? [0] : [];
        network.die(rank, comes);
        for (const one of happenings.slice(at)) happen(network, one);
        network.settle();
        // Of one that has never come, the hub learns by the deadline; of a hub that they have never reached, the others
        // by their own.
        if (rank !== 0) network.copies[0].expectAll();
        network.settle();
        for (const living of network.living) {
          const { header } = network.controls[living];
          const learns = rank !== 0 || known.includes(living);
          expect(header[Header.FAILED]).toBe(learns ? rank + 1 : 0);
          if (learns) expect(failKindOf(network.controls[living], rank)).toBe(FailKind.VANISHED);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('tell who comes late what has failed before', () => {
    const network = new Network(4);
    network.connect(1);
    network.join(1);
    network.look(1);
    network.die(1, true);
    network.connect(3);
    network.deliver(3, 0);
    while (network.deliver(0, 3));
    expect(network.controls[3].header[Header.FAILED]).toBe(2);
    expect(stateOf(network.controls[3], 1)).toBe(RankState.JOINED);
  });

  test('tell all of each rank that fails, and a member that has lost rank 0 that it hears of nobody any more', () => {
    const network = new Network(5);
    for (let rank = 0; rank < 5; rank++) network.join(rank);
    network.settle();
    const failed = (living: number): number[] => {
      const { slots, slotWords, size } = network.controls[living];
      return Array.from({ length: size }, (_, rank) => rank).filter((rank) => slots[rank * slotWords + Slot.FAILED]);
    };
    for (const [rank, others] of [
      [3, [3]],
      [1, [1, 3]],
    ] as const) {
      network.die(rank, true);
      network.settle();
      for (const living of network.living) {
        expect(failed(living)).toEqual(others);
        expect(network.controls[living].header[Header.FAILED]).toBe(4);
        expect(network.controls[living].header[Header.DEAF]).toBe(0);
      }
    }
    network.die(0, true);
    for (const living of network.living) {
      expect(failed(living)).toEqual([0, 1, 3]);
      expect(network.controls[living].header[Header.DEAF]).toBe(1);
    }
  });

  test('find no failure where ranks leave one after the other, rank 0 first or last', () => {
    for (const order of [
      [0, 1, 2, 3],
      [3, 1, 2, 0],
    ]) {
      const network = new Network(4);
      for (let rank = 0; rank < 4; rank++) network.join(rank);
      network.settle();
      for (const rank of order) {
        network.finalize(rank);
        network.look(rank);
        network.die(rank, true);
        for (const control of network.living.map((living) => network.controls[living])) {
          expect(control.header[Header.FAILED]).toBe(0);
        }
      }
    }
  });

  test('do not believe a member what it says of others, nor garbage', () => {
    const garbage = fc.record(
      {
        from: fc.oneof(fc.integer({ min: -2, max: SIZE }), fc.constant('1'), fc.constant(null), fc.double()),
        state: fc.oneof(fc.integer({ min: -1, max: 4 }), fc.constant('2'), fc.constant({})),
        pid: fc.oneof(fc.integer(), fc.constant('x'), fc.double()),
        to: fc.oneof(fc.integer({ min: -2, max: SIZE }), fc.constant([])),
        connection: fc.oneof(fc.integer(), fc.constant('7'), fc.double()),
        failed: fc.oneof(fc.integer({ min: SIZE, max: SIZE + 9 }), fc.constant('0'), fc.constant(-1), fc.constant(0.5)),
        kind: fc.anything(),
        value: fc.anything(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(garbage, { maxLength: 30 }), (messages) => {
        const network = new Network(SIZE);
        for (let rank = 0; rank < SIZE; rank++) network.join(rank);
        network.publish(2, 1, 77);
        network.settle();
        const liar = 3;
        for (const message of messages) network.wire(liar, 0).push(message as Message);
        network.settle();
        for (const rank of [0, 1, 2]) {
          const control = network.controls[rank];
          expect(control.header[Header.FAILED]).toBe(0);
          expect(control.header[Header.JOINED]).toBe(SIZE);
          for (const other of [0, 1, 2]) expect(stateOf(control, other)).toBe(RankState.JOINED);
          if (rank !== 0) expect(connection(control, 2, 1)).toBe(77);
          // What it says of itself goes forward only, and is counted once.
          expect([RankState.JOINED, RankState.FINALIZED]).toContain(stateOf(control, liar));
          expect(control.header[Header.FINALIZED]).toBe(stateOf(control, liar) === RankState.FINALIZED ? 1 : 0);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('have as many bytes for each rank, however many ranks there are', () => {
    const bytesOfEach = (size: number): number =>
      (controlBytes(size, { rank: 1 }) - controlBytes(0, { rank: 1 })) / size;
    expect(bytesOfEach(4096)).toBe(bytesOfEach(2));
    // Where the others' devices are.
    expect(makeControl(1, 3).fabric.length).toBe(3 * ROW_WORDS);
  });

  test('let nobody come twice, nor after it has failed or left', () => {
    const network = new Network(3);
    for (const rank of [0, 1, 2]) network.join(rank);
    const [hub] = network.copies;
    for (const nobody of [0, 3, -1, 1.5, '1', null, undefined, [1], {}]) expect(hub.mayCome(nobody)).toBe(false);
    expect(hub.mayCome(1)).toBe(true);
    network.settle();
    expect(hub.mayCome(1)).toBe(false);
    network.die(1, true);
    expect(hub.mayCome(1)).toBe(false);
    network.finalize(2);
    network.settle();
    network.die(2, true);
    expect(hub.mayCome(2)).toBe(false);
  });
});
