/**
 * The conformance suite of the verbs: what every provider must do, whatever it is made of.
 *
 * Topics are ordered so that the first failure is the cause: objects, states, data, two-sided, errors, limits, waiting,
 * claims, chance.
 */
import { describe } from 'vitest';
import { acknowledgements } from './acknowledgements.ts';
import { atomics } from './atomics.ts';
import { capabilities } from './capabilities.ts';
import { completions } from './completions.ts';
import { datagrams } from './datagrams.ts';
import { errors } from './errors.ts';
import { type Harness, suiteOver } from './harness.ts';
import { limits } from './limits.ts';
import { memory } from './memory.ts';
import { model } from './model.ts';
import { multicast } from './multicast.ts';
import { notReady } from './not-ready.ts';
import { ordering } from './ordering.ts';
import { rdma } from './rdma.ts';
import { sendReceive } from './send-receive.ts';
import { sharedReceives } from './shared-receives.ts';
import { states } from './states.ts';
import { updates } from './updates.ts';
import { waits } from './waits.ts';
import { wakeUps } from './wake-ups.ts';

export async function verbsConformance(name: string, harness: Harness): Promise<void> {
  const [context] = await harness.open(1);
  const { device, capabilities: claims } = context;
  context.close();
  const suite = suiteOver(harness, device, claims);
  describe(name, () => {
    describe('memory regions and domains', () => memory(suite));
    describe('queue pair states', () => states(suite));
    describe('RDMA write and read', () => rdma(suite));
    describe('atomics', () => atomics(suite));
    describe('send and receive', () => sendReceive(suite));
    describe('acknowledgements', () => acknowledgements(suite));
    describe('shared receive queues', () => sharedReceives(suite));
    describe('order', () => ordering(suite));
    describe('receiver not ready', () => notReady(suite));
    describe('requests that wait', () => waits(suite));
    describe('updates by the owner', () => updates(suite));
    describe('datagrams', () => datagrams(suite));
    describe('multicast groups', () => multicast(suite));
    describe('errors', () => errors(suite));
    describe('completion queues', () => completions(suite));
    describe('limits', () => limits(suite));
    describe('wake-ups', () => wakeUps(suite));
    describe('capabilities', () => capabilities(suite));
    describe('random requests against a model', () => model(suite));
  });
}
