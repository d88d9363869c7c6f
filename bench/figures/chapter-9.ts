/**
 * The figures of chapter 9 of the dissertation: operations that do not block, and handles for them, on its testbed, a
 * Myrinet-2000.
 */
import { runTasks } from 'onesided/fabrics';
import { fabricOf } from './fabrics.ts';
import { type Figure, forEach, rounded, type Series, show, sizeName } from './figure.ts';
import { HANDLES, type Handle, type Handled, handled, heldBack, hiding, PROTOCOLS } from './handles.ts';

const FABRIC = { fabric: fabricOf('myrinet-2000'), seed: 1 } as const;
const SAMPLES = 5;
/** Microseconds: longer than 64 operations take. */
const COMPUTE = 2000;
const FILES = [
  'src/window/calls/aggregate-handle.ts',
  'src/window/calls/window-request.ts',
  'src/transfer/requests/outstanding.ts',
];
const PROGRAM = 'bench/figures/handles.ts';

const NUMBERS = [1, 2, 3, 4, 8, 16, 32, 64];
const OPERATIONS = ['put', 'get'] as const;
/** Of 10 puts of a handle, those that have arrived before the wait, by its limit: all lists that were full. */
const LIMITS = [
  [64, 0],
  [4, 8],
  [10, 10],
] as const;

/** Bytes of a get. */
const SIZES = [8, 64, 512, 4096, 16384, 65536, 262144, 1048576];
/** The issue's bound of what a handle may add to a get. */
const ADDED = 5;

const HIDDEN_SIZES = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1048576];
/** Messages up to this size are eager (`host.eager`). */
const SWITCH = FABRIC.fabric.host.eager;
const LARGE = 262144;

async function run(handle: Handle, operation: 'put' | 'get', bytes: number, operations: number): Promise<Handled> {
  const options = { handle, operation, bytes, operations, samples: SAMPLES, compute: COMPUTE };
  const found = await runTasks(2, (world) => handled(world, options), FABRIC);
  return { ...found[0], right: found.every(({ right }) => right) };
}

const range = (values: readonly number[], digits: number): string =>
  `${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)}`;

export const chapter9: readonly Figure[] = [
  {
    id: 'D9.1',
    claim:
      'explicit handles, implicit handles (wait for a rank, wait for all), ' +
      'aggregate handles (any number of puts/gets to one rank become one vector operation at wait or when full)',
    source: 'dissertation §9.1–9.2',
    caption:
      "Time of the origin's processor that puts and gets of 8 bytes take, waited for together, one by one, " +
      'and by an aggregate handle.',
    expected:
      'all data correct with each handle; operations of an aggregate handle leave when it is full or ' +
      'waited for, and not before; from two operations on, puts and gets take less processor time ' +
      'than separate ones',
    schemes: [...FILES, PROGRAM],
    async measure() {
      const runs = await forEach(OPERATIONS, (operation) =>
        forEach(HANDLES, (handle) => forEach(NUMBERS, (number) => run(handle, operation, 8, number))),
      );
      const held = await forEach(LIMITS, async ([limit]) => {
        const found = await runTasks(2, (world) => heldBack(world, { operations: 10, limit }), FABRIC);
        return found[1];
      });
      const series: Series[] = OPERATIONS.flatMap((operation, o) =>
        HANDLES.map((handle, h) => ({
          name: `${operation}, ${handle}`,
          values: runs[o][h].map(({ processor }) => processor),
          ...(operation === 'get' ? { like: `put, ${handle}` } : {}),
        })),
      );
      const of = (o: number, handle: Handle): readonly Handled[] => runs[o][HANDLES.indexOf(handle)];
      const less = OPERATIONS.every((_, o) =>
        NUMBERS.every((n, k) => n < 2 || of(o, 'aggregate')[k].processor < of(o, 'implicit')[k].processor),
      );
      const right = runs.flat(2).every((one) => one.right);
      const leaves = held.every(({ before, after }, i) => before === LIMITS[i][1] && after === 10);
      const sooner = OPERATIONS.map((_, o) =>
        NUMBERS.map((_, k) => 100 * (of(o, 'aggregate')[k].took / of(o, 'implicit')[k].took - 1)),
      );
      return {
        chart: {
          kind: 'lines',
          x: { name: 'operations', places: NUMBERS },
          y: { name: "time of the origin's processor (µs)", logarithmic: true },
          series,
          also: Object.fromEntries(
            OPERATIONS.map((operation, o) => [
              `${operation}: % that an aggregate handle is complete later than separate ones`,
              rounded(sooner[o], 1),
            ]),
          ),
        },
        measured:
          OPERATIONS.map((operation, o) => {
            const parts = NUMBERS.map((_, k) => of(o, 'aggregate')[k].processor / of(o, 'implicit')[k].processor);
            return (
              `from two ${operation}s on, an aggregate handle takes ${range(parts.slice(1), 2)} of the time ` +
              'of separate ones'
            );
          }).join('; ') +
          `. ${right ? 'All data are right' : 'Some data are wrong'}. ` +
          `Of 10 puts with a limit of ${LIMITS.map(([limit]) => limit).join(', ')}, ` +
          `${held.map(({ before }) => before).join(', ')} are there before the wait and ` +
          `${held.map(({ after }) => after).join(', ')} after it`,
        holds: right && leaves && less,
        note:
          'the vector operation is a list of requests, with one doorbell and one completion for up to 16 of them: a ' +
          'request of an adapter has one place at the target. Without computation meanwhile, the operations of a ' +
          `handle are complete up to ${Math.max(...sooner.flat()).toFixed(1)} % later than separate ones, since the ` +
          'adapter begins when the list is written',
      };
    },
  },
  {
    id: 'D9.2',
    claim: 'the handle layer adds almost nothing to the bare get',
    source: 'dissertation figure 9.4',
    caption: 'A get and its completion: by a flush, by its request, and by an aggregate handle.',
    expected:
      `an explicit and an aggregate handle take at most ${ADDED} % longer than the get and a flush, at ` +
      'every size; all data right',
    schemes: [...FILES, PROGRAM],
    async measure() {
      const runs = await forEach(HANDLES, (handle) => forEach(SIZES, (bytes) => run(handle, 'get', bytes, 1)));
      const times = runs.map((one) => one.map(({ took }) => took));
      const added = times.slice(1).flatMap((one) => one.map((took, k) => 100 * (took / times[0][k] - 1)));
      return {
        chart: {
          kind: 'lines',
          x: { name: 'bytes', places: SIZES.map(sizeName) },
          y: { name: 'time (µs)', logarithmic: true },
          series: HANDLES.map((name, h) => ({ name, values: times[h] })),
        },
        measured:
          `a get of 8 bytes takes ${show(times[0][0])} µs, one of 1M ${show(times[0].at(-1)!)}; a handle adds ` +
          `${Math.max(...added).toFixed(1)} % at most`,
        holds: added.every((value) => value <= ADDED) && runs.flat().every(({ right }) => right),
        note:
          'the model charges for posting and polling, not for the instructions of the library itself: ' +
          'the figure shows that a handle needs no further request and no further poll. The rows on real ' +
          'ranks show what its instructions cost',
      };
    },
  },
  {
    id: 'D9.3',
    claim:
      'overlap of a non-blocking get: > 99 % direct, about 90 % buffered; ' +
      'send/receive loses it at the rendezvous switch (16 KiB)',
    source: 'dissertation figure 9.5',
    caption: 'Share of the time of a get that computation between its call and its wait hides.',
    expected:
      `direct above 99 % from ${sizeName(LARGE)} bytes on; buffered 85 to 95 % at some size, ` +
      `and nowhere more than direct; messages above ${sizeName(SWITCH)} bytes at most two thirds of what they have ` +
      'at the largest size up to it',
    schemes: [
      'src/window/calls/window-request.ts',
      'src/transfer/requests/request-transfer.ts',
      'src/transfer/layouts/pack.ts',
      PROGRAM,
    ],
    async measure() {
      const [direct, buffered, messages] = await forEach(PROTOCOLS, (protocol) =>
        forEach(HIDDEN_SIZES, async (bytes) => {
          const [found] = await runTasks(2, (world) => hiding(world, { protocol, bytes, samples: 3 }), FABRIC);
          return found;
        }),
      );
      const from = (values: readonly number[], least: number): number[] =>
        values.filter((_, k) => HIDDEN_SIZES[k] >= least);
      const upTo = (values: readonly number[], most: number): number[] =>
        values.filter((_, k) => HIDDEN_SIZES[k] <= most);
      const eager = messages.filter((_, k) => HIDDEN_SIZES[k] <= SWITCH).at(-1)!;
      const parts = [
        ['direct', from(direct, LARGE).every((value) => value > 99)],
        ['buffered', buffered.some((v) => v >= 85 && v <= 95) && buffered.every((v, k) => v <= direct[k])],
        ['messages', from(messages, SWITCH + 1).every((value) => value <= (2 / 3) * eager)],
      ] as const;
      const held = parts.filter(([, holds]) => holds).map(([name]) => name);
      const failed = parts.filter(([, holds]) => !holds).map(([name]) => name);
      return {
        chart: {
          kind: 'lines',
          x: { name: 'bytes', places: HIDDEN_SIZES.map(sizeName) },
          y: { name: 'overlap (%)' },
          series: [direct, buffered, messages].map((values, i) => ({ name: PROTOCOLS[i], values })),
        },
        measured:
          `direct hides at least ${Math.min(...from(direct, LARGE)).toFixed(2)} % from ${sizeName(LARGE)} bytes ` +
          `on. Buffered hides ${range(upTo(buffered, SWITCH - 1), 1)} % below ${sizeName(SWITCH)}. Messages hide ` +
          `${range(upTo(messages, SWITCH), 1)} % up to ${sizeName(SWITCH)}, and ` +
          `${range(from(messages, SWITCH + 1), 1)} % above. As claimed: ${held.join(', ') || 'none'}` +
          `${failed.length === 0 ? '' : `; not: ${failed.join(', ')}`}`,
        holds: failed.length === 0,
        note:
          'direct hides all but posting the request and taking its completion. The library buffers no get of ' +
          'consecutive bytes; `noncontiguous: pack` stands for it, where the processor of the target packs the ' +
          "answer into a message and the origin's unpacks it. From 16K bytes on that is a long message, whose " +
          "handshake waits for the origin's processor, as that of send and receive does. The figure was on " +
          "InfiniBand first; only the totals of this Myrinet's numbers have a source",
      };
    },
  },
];
