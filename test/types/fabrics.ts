/** What the compiler says of descriptions of fabrics: `npm run check` reads this file, and nobody runs it. */
import { type Fabric, type FabricDescription, loadFabric, runTasks } from 'onesided/fabrics';
import described from '../../fabrics/infinihost-64.json' with { type: 'json' };

export async function descriptions(): Promise<void> {
  const description: FabricDescription = described;
  const fabric: Fabric = loadFabric('infinihost-64');
  for (const one of ['infinihost-64', './mine.json', described, description, fabric])
    await runTasks(2, async () => {}, { fabric: one });
  // @ts-expect-error: a part of a description is missing
  await runTasks(2, async () => {}, { fabric: { name: 'mine', about: 'nothing' } });
}
