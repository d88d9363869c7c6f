/**
 * workers.js under pm2, without a failed request when it is reloaded:
 *
 *     pm2 start examples/services/ecosystem.config.cjs      then: pm2 reload workers
 */
const { PORT = '8080', WORKERS = '4' } = process.env;

module.exports = {
  apps: [
    {
      name: 'workers',
      script: './workers.js',
      cwd: __dirname,
      args: ['--port', PORT],
      // Workers that share one port.
      exec_mode: 'cluster',
      instances: Number(WORKERS),
      // The worker before it ends when this one says process.send('ready'), within so many milliseconds.
      wait_ready: true,
      listen_timeout: 10_000,
      // Milliseconds from SIGINT to SIGKILL, for the requests that are under way.
      kill_timeout: 10_000,
    },
  ],
};
