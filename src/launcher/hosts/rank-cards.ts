/** The cards of ranks that join: collected, and given to all when the last has come. */
import type { CardsReply } from '../../start/managers/pipe.ts';

export class RankCards {
  readonly #cards: (string | undefined)[];
  readonly #reply: (reply: CardsReply) => void;
  #missing: number;
  #replied = false;

  /** @param reply called once: with all cards, or why they will not come */
  constructor(size: number, reply: (reply: CardsReply) => void) {
    this.#cards = new Array(size).fill(undefined);
    this.#missing = size;
    this.#reply = reply;
  }

  get isEmpty(): boolean {
    return this.#missing === this.#cards.length;
  }

  add(rank: number, card: string): void {
    if (this.#replied || this.#cards[rank] !== undefined) return;
    this.#cards[rank] = card;
    if (--this.#missing === 0) this.#say({ cards: this.#cards as string[] });
  }

  /** A rank without which the others cannot join. @param why in words, if it has not shown its card */
  ended(rank: number, why: string): void {
    if (this.#missing > 0) this.#say({ refused: why, rank });
  }

  #say(reply: CardsReply): void {
    if (this.#replied) return;
    this.#replied = true;
    this.#reply(reply);
  }
}
