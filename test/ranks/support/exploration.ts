/** Which requirements are tried under which schedules, and what comes out. */

import { bspChapters } from '../conformance/bsp.ts';
import { allChapters, standardOf } from '../conformance/chapters.ts';
import type { Requirement } from '../conformance/requirement.ts';
import { isNotOnDevices, tryUnder } from './explorer.ts';
import { isOfScheme, schemes } from './schemes.ts';

export const CHAPTERS: Readonly<Record<string, readonly Requirement[]>> = { ...allChapters, ...schemes };

/** Options of `npm run explore`: what is left out is everything. */
export interface Choice {
  readonly chapter?: string | undefined;
  readonly scheme?: string | undefined;
  /** What the requirement says, or a part of it. */
  readonly only?: string | undefined;
  readonly size?: number | undefined;
  readonly fabric?: string | undefined;
}

/** From `first` on, `count` of them. */
export interface Seeds {
  readonly first: number;
  readonly count: number;
}

export interface Found {
  readonly schedules: number;
  /** For people, each with the command that repeats it. */
  readonly failures: readonly string[];
  /** Requirements that cannot be tried here, since they are of what devices do not have. */
  readonly unavailable: readonly string[];
}

/** Ranks on nodes of their own, all on one node, and some on each. */
const FABRICS = ['infinihost-64', 'connectx-16-cores', 'connectx-16-cores/2', 'connectx-16-cores/3'];

export class Exploration {
  readonly #choice: Choice;
  readonly #chosen: readonly { readonly name: string; readonly requirement: Requirement }[];

  constructor(choice: Choice) {
    const { chapter, scheme, only } = choice;
    this.#choice = choice;
    this.#chosen = Object.entries(CHAPTERS)
      .filter(([name]) => chapter === undefined || name === chapter)
      .flatMap(([name, requirements]) => requirements.map((requirement) => ({ name, requirement })))
      .filter(({ requirement }) => requirement.run !== undefined)
      .filter(({ name, requirement }) => scheme === undefined || (name in schemes && isOfScheme(requirement, scheme)))
      .filter(({ requirement }) => only === undefined || requirement.says.includes(only));
  }

  get requirements(): number {
    return this.#chosen.length;
  }

  async explore({ first, count }: Seeds): Promise<Found> {
    const failures: string[] = [];
    const unavailable = new Set<string>();
    let schedules = 0;
    for (let seed = first; seed < first + count; seed++) {
      for (const { name, requirement } of this.#chosen) {
        const varies = name in schemes || name in bspChapters;
        const size = this.#choice.size ?? (varies ? 2 + (seed % 6) : 3);
        const fabric = this.#choice.fabric ?? FABRICS[varies ? Math.floor(seed / 4) % FABRICS.length : 0];
        if (unavailable.has(requirement.says) || requirement.from > size) continue;
        const error = await tryUnder(requirement, { fabric, size, seed });
        if (requirement.needs !== undefined && isNotOnDevices(error)) {
          unavailable.add(requirement.says);
          continue;
        }
        schedules++;
        if (error === undefined) continue;
        const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
        failures.push(
          `${standardOf(name)}, ${requirement.section}: ${requirement.says}\n${text}\nto repeat it: ` +
            `npm run explore -- --seeds=1 --first=${seed} --chapter=${name} --size=${size} --fabric=${fabric} ` +
            `'--only=${requirement.says}'\n`,
        );
      }
    }
    return { schedules, failures, unavailable: [...unavailable] };
  }
}
