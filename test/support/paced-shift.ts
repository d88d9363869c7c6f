/**
 * The experiment of Donaldson, Hill and Skillicorn without ranks: in a cyclic shift each processor writes one message
 * to its right neighbour's socket in packets, one in a random slot of each cycle, or all at once.
 */
import { CollisionBus } from '../../src/providers/modelled/ethernet/collision-bus.ts';
import type { EthernetNumbers, TcpNumbers } from '../../src/providers/modelled/ethernet/ethernet-numbers.ts';
import { Reception } from '../../src/providers/modelled/ethernet/medium.ts';
import { connectTcp, type TcpEnd } from '../../src/providers/modelled/ethernet/tcp-connection.ts';
import { Random } from '../../src/providers/modelled/random.ts';
import { Simulator } from '../../src/providers/modelled/simulator.ts';
import { bus10, NO_FAULTS } from './ethernet.ts';

/** Bytes of a packet. */
const PACKET = 1418;
/** Processors begin within so many microseconds. */
const SKEW = 300;

export interface Shift {
  readonly processors: number;
  readonly bytes: number;
  /** Microseconds. 0: not paced. */
  readonly slot: number;
  readonly seed: number;
  readonly tcp?: Partial<TcpNumbers>;
  readonly ethernet?: Partial<EthernetNumbers>;
}

/** Milliseconds until all have everything. */
function pacedShift({ processors, bytes, slot, seed, ...changed }: Shift): number {
  const ethernet = { ...bus10.ethernet, ...changed.ethernet };
  const simulator = new Simulator(processors, seed, false);
  const reception = new Reception(simulator, NO_FAULTS, ethernet, processors, true);
  const medium = new CollisionBus(simulator, ethernet, new Random(seed, 3), reception, processors);
  const host = { agenda: simulator, medium, ethernet, tcp: { ...bus10.tcp, ...changed.tcp } };
  const draw = new Random(seed, 100 + processors);
  const senders: TcpEnd[] = [];
  if (processors === 2) senders.push(...connectTcp(host, 0, 1));
  else for (let i = 0; i < processors; i++) senders.push(connectTcp(host, i, (i + 1) % processors)[0]);
  let left = 0;
  const nothing = (): void => {};
  const written = { delivered: () => void left--, acknowledged: nothing, failed: nothing };
  for (const [i, sender] of senders.entries()) {
    const begin = SKEW * draw.fraction();
    for (let sent = 0, cycle = 0; sent < bytes; sent += PACKET, cycle++) {
      const length = Math.min(PACKET, bytes - sent);
      left++;
      const time = begin + (cycle * processors + Math.floor(processors * draw.fraction())) * slot;
      simulator.at(time, i, { happen: () => sender.write(length, written) });
    }
  }
  simulator.drain(() => left === 0);
  simulator.stop();
  return simulator.now / 1000;
}

export interface Mean {
  readonly mean: number;
  readonly deviation: number;
}

function meanOf(values: readonly number[]): Mean {
  const mean = values.reduce((a, b) => a + b) / values.length;
  return { mean, deviation: Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length) };
}

/** Over seeds 1 … `seeds`. */
export function meanShift(shift: Omit<Shift, 'seed'>, seeds: number): Mean {
  return meanOf(Array.from({ length: seeds }, (_, i) => pacedShift({ ...shift, seed: i + 1 })));
}

/** The smallest slot from which on the deviation stays below `share` of the mean; undefined: none. */
export function calmSlot(shift: Omit<Shift, 'seed' | 'slot'>, slots: readonly number[], seeds: number, share: number) {
  const means = slots.map((slot) => meanShift({ ...shift, slot }, seeds));
  return slots.find((_, i) => means.slice(i).every(({ mean, deviation }) => deviation < share * mean));
}
