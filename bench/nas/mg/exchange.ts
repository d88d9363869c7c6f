/**
 * What the ranks of a level tell each other: the points around their blocks, and coarse points for ranks that have
 * none.
 *
 * Ghosts are exchanged axis after axis. What goes along an axis contains the ghosts of the axes before it, so edges and
 * corners come without messages of their own. Where a style overlaps, the faces go along all axes at once as soon as
 * the points of this rank's surface are computed, while the points inside are, and what belongs to ghosts of the axes
 * before follows as `rims` when those are there. That is more messages, and only for blocks that are worth it.
 */
import type { Communicator } from 'onesided';
import type { Link } from '../link.ts';
import type { Links } from '../links.ts';
import {
  AXES,
  type Axis,
  type Block,
  type Box,
  blockOf,
  type Level,
  type Place,
  pointsIn,
  replaced,
  type Triple,
  triple,
} from './grid.ts';
import { pack, unpack } from './kernels.ts';
import type { Rows } from './rows.ts';

/** Computes the points of a box, none of which needs another. It also takes the time for it. */
export type Produce = (box: Box) => void | Promise<void>;

/** Directions along an axis. */
const SIDES = [1, -1] as const;
type Side = (typeof SIDES)[number];

/** Blocks shorter than this are not computed from the outside in: their rims would be messages of a few bytes. */
const WORTH = 8;

/** With an axis' range replaced. */
function cut({ low, high }: Box, axis: Axis, first: number, last: number): Box {
  return { low: replaced(low, axis, first), high: replaced(high, axis, last) };
}

/** Of a block, the points that go to a side, or those that come from the other one. */
function layer(box: Box, axis: Axis, side: Side, what: 'sent' | 'received', points: number): Box {
  const inner = what === 'sent' ? (side === 1 ? points : 1) : side === 1 ? 0 : points + 1;
  return cut(box, axis, inner, inner);
}

export class Exchange {
  readonly #place: Place;
  readonly #overlaps: boolean;
  /** By stride, axis and side: a stride is a power of two. */
  readonly #links = new Map<string, Link>();
  #scratch = new Float64Array(0);
  /** By level, what this rank needs of the coarse points of another one. */
  readonly #around = new Map<Level, Block>();

  private constructor(place: Place, overlaps: boolean) {
    this.#place = place;
    this.#overlaps = overlaps;
  }

  /** Collective. @param rows undefined if the arithmetic is left out */
  static async make(
    world: Communicator,
    place: Place,
    levels: readonly Level[],
    links: Links,
    rows: Rows | undefined,
  ): Promise<Exchange> {
    const exchange = new Exchange(place, links.style.overlaps);
    for (const level of levels) if (!level.active) exchange.#around.set(level, blockOf(lengthsAround(level), rows));
    for (const axis of AXES) {
      if (place.ranks[axis] === 1) continue;
      const [along, at] = [place.ranks[axis], place.at[axis]];
      const group = await links.group(world, place.lineAlong(axis));
      for (let stride = 1; stride < along; stride *= 2) {
        const those = levels.filter((level) => level.stride[axis] === stride);
        if (those.length === 0) continue;
        const capacity = Math.max(
          ...those.map(({ lengths, points }) => facePoints(lengths, axis) * (points[axis] === 1 ? 2 : 1)),
        );
        for (const side of SIDES) {
          const to = (at + side * stride + along) % along;
          const from = (at - side * stride + along) % along;
          exchange.#links.set(`${stride} ${axis} ${side}`, await links.make({ group, capacity, to, from }));
        }
      }
    }
    return exchange;
  }

  #link(level: Level, axis: Axis, side: Side): Link {
    return this.#links.get(`${level.stride[axis]} ${axis} ${side}`)!;
  }

  /** Along this axis the rank is its own neighbour. With the process grid of grid.ts, such axes come first. */
  #isLocal(axis: Axis): boolean {
    return this.#place.ranks[axis] === 1;
  }

  /** Computes the points of a block, and brings its ghosts. Of all ranks that have points on this level. */
  async produce(level: Level, block: Block, produce: Produce): Promise<void> {
    const remote = AXES.filter((axis) => !this.#isLocal(axis));
    if (this.#overlaps && remote.length > 0 && Math.min(...level.points) >= WORTH) {
      await this.#fromOutside(level, block, produce, remote);
      return;
    }
    await produce(level.interior);
    this.#wrap(level, block, level.interior);
    for (const axis of remote) {
      const whole = this.#face(level, axis, true);
      await this.#post(level, block, axis, [whole]);
      await this.#take(level, block, axis, [whole]);
    }
  }

  /** The surface first, and its faces leave; then the inside in as many parts as there are steps to be waited for. */
  async #fromOutside(level: Level, block: Block, produce: Produce, remote: readonly Axis[]): Promise<void> {
    let inside = level.interior;
    const compute = async (box: Box): Promise<void> => {
      await produce(box);
      this.#wrap(level, block, box);
    };
    for (const axis of [...remote].reverse()) {
      const [first, last] = [inside.low[axis], inside.high[axis]];
      await compute(cut(inside, axis, first, first));
      await compute(cut(inside, axis, last, last));
      inside = cut(inside, axis, first + 1, last - 1);
    }
    for (const axis of remote) await this.#post(level, block, axis, [this.#face(level, axis, false)]);
    const [front, depth] = [inside.low[2], inside.high[2] - inside.low[2] + 1];
    const end = (part: number): number => front + Math.floor((part * depth) / remote.length);
    for (const [part, axis] of remote.entries()) {
      await compute(cut(inside, 2, end(part), end(part + 1) - 1));
      await this.#take(level, block, axis, [this.#face(level, axis, false)]);
      // The rims of this axis have been on their way since the ghosts of the axes before were there.
      const rims = this.#rims(level, remote, axis);
      if (rims.length > 0) await this.#take(level, block, axis, rims);
      const next = remote[part + 1];
      if (next !== undefined) await this.#post(level, block, next, this.#rims(level, remote, next));
    }
  }

  /** The range of a face: ghosts of the axes before, of those that are local or of all, and none of the axes behind. */
  #face({ lengths, points }: Level, axis: Axis, whole: boolean): Box {
    const wide = (other: Axis): boolean => other < axis && (whole || this.#isLocal(other));
    return {
      low: AXES.map((other) => (wide(other) ? 0 : 1)) as unknown as Triple,
      high: AXES.map((other) => (wide(other) ? lengths[other] - 1 : points[other])) as unknown as Triple,
    };
  }

  /** What a whole face has and the early one has not. */
  #rims(level: Level, remote: readonly Axis[], axis: Axis): Box[] {
    const early = this.#face(level, axis, false);
    const rims: Box[] = [];
    let range = early;
    for (const before of remote.filter((other) => other < axis)) {
      const last = level.lengths[before] - 1;
      for (const end of [0, last]) rims.push(cut(range, before, end, end));
      range = cut(range, before, 0, last);
    }
    return rims;
  }

  /** Sends boxes of a layer to both sides, in one message each. */
  async #post(level: Level, block: Block, axis: Axis, boxes: readonly Box[]): Promise<void> {
    for (const side of SIDES) {
      const link = this.#link(level, axis, side);
      const layers = boxes.map((box) => layer(box, axis, side, 'sent', level.points[axis]));
      await send(link, block, layers);
    }
  }

  async #take(level: Level, block: Block, axis: Axis, boxes: readonly Box[]): Promise<void> {
    for (const side of SIDES) {
      const link = this.#link(level, axis, side);
      const layers = boxes.map((box) => layer(box, axis, side, 'received', level.points[axis]));
      await receive(link, block, layers);
    }
    for (const side of SIDES) await this.#link(level, axis, side).settle();
  }

  /** The ghosts along local axes of points that were computed, which reach over the whole of those axes. */
  #wrap({ points, lengths }: Level, { data }: Block, computed: Box): void {
    if (data === undefined) return;
    let box = computed;
    for (const axis of AXES.filter((one) => this.#isLocal(one))) {
      const last = lengths[axis] - 1;
      for (const [to, from] of [
        [0, points[axis]],
        [last, 1],
      ]) {
        const source = cut(box, axis, from, from);
        if (this.#scratch.length < pointsIn(source)) this.#scratch = new Float64Array(pointsIn(source));
        pack({ data, lengths }, source, this.#scratch, 0);
        unpack({ data, lengths }, cut(box, axis, to, to), this.#scratch, 0);
      }
      box = cut(box, axis, 0, last);
    }
  }

  /**
   * What a rank needs of the coarse grid to interpolate to the fine one: its own coarse block, or, if it has none, the
   * two layers along each axis that its neighbour has around its fine points. Of all ranks that have fine points.
   *
   * @returns the block, and `shift` as `interpolate` takes it
   */
  async spread(fine: Level, coarse: Level, own: Block): Promise<readonly [Block, Triple]> {
    const thins = (axis: Axis): boolean => coarse.stride[axis] > fine.stride[axis];
    const block = coarse.active ? own : this.#around.get(coarse)!;
    const { lengths } = block;
    let there = coarse.active;
    for (const axis of AXES) {
      if (!thins(axis)) continue;
      // Ranks that have the coarse points of the axes behind this one take part: the others get theirs later.
      if (!AXES.every((other) => other <= axis || coarse.has[other])) continue;
      const link = this.#link(fine, axis, -1);
      const all: Box = { low: [0, 0, 0], high: lengths.map((length) => length - 1) as unknown as Triple };
      if (coarse.has[axis]) await send(link, block, [cut(all, axis, 0, 1)]);
      else {
        await receive(link, block, [all]);
        there = true;
      }
    }
    if (!there) throw new Error('no coarse points have come');
    const shift = AXES.map((axis) => (thins(axis) && coarse.has[axis] ? 1 : 0)) as unknown as Triple;
    return [block, shift];
  }
}

/** Of what a rank without points of a level needs of them: two layers along each axis on which it has none. */
export function lengthsAround({ has, lengths }: Level): Triple {
  return triple((axis) => (has[axis] ? lengths[axis] : 2));
}

function facePoints(lengths: Triple, axis: Axis): number {
  return AXES.reduce<number>((all, other) => (other === axis ? all : all * lengths[other]), 1);
}

async function send(link: Link, block: Block, boxes: readonly Box[]): Promise<void> {
  const length = boxes.reduce((all, box) => all + pointsIn(box), 0);
  const room = await link.room(length);
  let at = 0;
  for (const box of boxes) at += pack(block, box, room, at);
  await link.post(length);
}

async function receive(link: Link, block: Block, boxes: readonly Box[]): Promise<void> {
  const length = boxes.reduce((all, box) => all + pointsIn(box), 0);
  const message = await link.take(length);
  let at = 0;
  for (const box of boxes) at += unpack(block, box, message, at);
}
