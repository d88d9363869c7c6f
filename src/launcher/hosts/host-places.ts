/** Which hosts of a job are one place: several names can lead to the same machine, and then its agents share memory. */
import type { AgentLink } from './agent-link.ts';

/** Agents that share memory, which is theirs alone. */
interface Place {
  readonly links: readonly AgentLink[];
  /** The one that makes the memory. */
  readonly first: AgentLink;
  readonly ranks: ReadonlySet<number>;
  /** The first of the ranks. */
  readonly leader: number;
}

export function placesOf(links: readonly AgentLink[]): Place[] {
  const names = new Set(links.map(({ hello }) => hello?.place));
  return [...names].map((name) => {
    const own = links.filter(({ hello }) => hello?.place === name);
    const ranks = own.flatMap((link) => link.ranks);
    return { links: own, first: own[0], ranks: new Set(ranks), leader: Math.min(...ranks) };
  });
}

/** Whether others have the job's memory through an agent: those at its place, or, at that of rank 0, all hosts. */
export function leads(link: AgentLink, links: readonly AgentLink[]): boolean {
  return link === links[0] || placesOf(links).some((place) => place.first === link && place.links.length > 1);
}
