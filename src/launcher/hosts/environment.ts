/**
 * Which variables of the launcher's environment the ranks of other hosts get. Those that say where a process is, or how
 * somebody has logged in, stay at home: each host has its own.
 */
const AT_HOME = new RegExp(
  `^(${[
    'PATH|HOME|USER|LOGNAME|USERNAME|SHELL|SHLVL|PWD|OLDPWD|HOSTNAME|HOST|MAIL|TMPDIR|TEMP|TMP|_',
    'TERM_PROGRAM.*|COLORTERM|TMUX.*|STY|WINDOWID|DISPLAY|XAUTHORITY|WAYLAND_.*|DESKTOP_SESSION',
    'XDG_.*|DBUS_.*|SSH_.*|GPG_.*|KUBERNETES_.*|KUBECONFIG|DOCKER_.*|INVOCATION_ID|JOURNAL_STREAM|BASH_FUNC_.*',
    'ONESIDED_(RACES_LOGS|RANK|SIZE|ROOT_ADDRESS|SECRET|CONTROL_FD|CARDS_FD|JOB|ADDRESS|HOST)',
    'PMI_.*|PMIX_.*|RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT',
  ].join('|')})$`,
);

export function sentEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const sent = Object.entries(env).filter(([name, value]) => value !== undefined && !AT_HOME.test(name));
  return Object.fromEntries(sent) as Record<string, string>;
}
