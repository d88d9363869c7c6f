/** The processor of a task on a modelled fabric: what it is told of takes virtual time, or has its place in it. */
import type { CompletionQueue } from '../../verbs/completion-queue.ts';
import type { Context } from '../../verbs/device.ts';
import type { Processor, ProcessorUse, SharedWordCosts } from '../../verbs/processor.ts';
import type { ModelledContext } from './modelled-context.ts';

export class ModelledProcessor implements Processor {
  readonly isVirtual = true;
  readonly #context: ModelledContext;

  constructor(context: ModelledContext) {
    this.#context = context;
  }

  get use(): ProcessorUse {
    const { library, helped, computed } = this.#context.cpu;
    return { library, helper: helped, computed };
  }

  spend(microseconds: number): void {
    this.#context.cpu.spend(microseconds);
  }

  copy(bytes: number): void {
    this.spend(bytes * this.#context.fabric.host.copy);
  }

  record(bytes: number, records = 1): void {
    const { copy, record } = this.#context.fabric.host;
    this.spend(bytes * copy + records * record);
  }

  combine(bytes: number): void {
    this.spend(bytes * this.#context.fabric.host.combine);
  }

  reduction(): void {
    this.spend(this.#context.fabric.host.reduction);
  }

  atomic(): void {
    this.spend(this.#context.fabric.node.atomic);
  }

  get node(): SharedWordCosts {
    return this.#context.fabric.node;
  }

  wake(_own: Context, member: number, later: number): void {
    this.#context.wake(member, later);
  }

  get inOrder(): boolean {
    return this.#context.simulator.inEvent;
  }

  touch(access: () => void): void {
    if (this.inOrder) access();
    else this.#context.touch(access);
  }

  asks(): void {
    this.#context.cpu.asking = true;
  }

  handleEvents(handler: () => void): () => void {
    return this.#context.handleEvents(handler);
  }

  get hasHelper(): boolean {
    return this.#context.fabric.host.helper !== 0;
  }

  handleCompletions(handler: () => void, wants: (cq: CompletionQueue, receives: boolean) => boolean): () => void {
    return this.#context.handleCompletions(handler, wants);
  }

  get fetched(): number {
    return this.#context.cpu.fetched;
  }

  lookAgain(): void {
    this.#context.cpu.lookAgain();
  }

  letPass(): void {
    this.#context.simulator.letPass();
  }
}
