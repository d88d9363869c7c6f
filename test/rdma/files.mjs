/** Files of this folder that are about libfabric alone: `npm run test:tcp` runs them, and `npm run test:rdma` does not. */
export const ON_TCP = [
  'tcp',
  'acknowledgements',
  'notices',
  'hostile',
  'local-memory',
  'batches',
  'batches-under-way',
  'cable',
  'networks',
  'deferred-locks',
].map(path);

/** What `npm run test:tcp` runs besides. Devices run every other file. */
export const ON_BOTH = ['verbs', 'windows', 'bsp', 'namespaces', 'calls'].map(path);

function path(name) {
  return `test/rdma/${name}.test.ts`;
}
