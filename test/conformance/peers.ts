/**
 * What other suites test of one-sided communication, by the names of their programs: each must be named by a
 * requirement that stands for it (`like`), or stand below with the reason why it does not apply. Nothing of theirs is
 * used but what they test.
 */

/** MPICH, test/mpi/rma. Variants of one program (`_am`, `_shm`) are programs of their own, as in its list. */
const MPICH = `
acc_flush_get acc_loc acc_ordering acc_pairtype accfence1 accfence2 accfence2_am accpscw1 adlb_mimic1 aint allocmem
at_complete atomic_get atomic_rmw_cas atomic_rmw_fop atomic_rmw_gacc attrorderwin badrma baseattrwin cas_flush_get
compare_and_swap contention_put contention_putget contig_displ derived_acc_flush_local epochtest fence fence_shm
fetch_and_op_char fetch_and_op_double fetch_and_op_int fetch_and_op_long fetch_and_op_long_double fetch_and_op_short
fetchandadd fetchandadd_am fetchandadd_tree fetchandadd_tree_am fkeyvalwin flush fop_flush_get gacc_flush_get
get_acc_flush get_acc_local get_accumulate_double get_accumulate_double_derived get_accumulate_int
get_accumulate_int_derived get_accumulate_long get_accumulate_long_derived get_accumulate_short
get_accumulate_short_derived get_flushlocal get_struct getfence1 getgroup ircpi large_acc_flush_local large_small_acc
linked_list linked_list_bench_lock_all linked_list_bench_lock_excl linked_list_bench_lock_shr
linked_list_bench_lock_shr_nocheck linked_list_fop linked_list_lockall lock_contention_dt lock_dt lock_dt_flush
lock_dt_flushlocal lock_nested lock_x_dt lockall_dt lockall_dt_flush lockall_dt_flushall lockall_dt_flushlocal
lockall_dt_flushlocalall lockcontention lockcontention2 lockcontention3 locknull lockopts manyget manyrma2 manyrma2_shm
manyrma3 mcs_mutex mixedsync mutex_bench mutex_bench_shared mutex_bench_shm mutex_bench_shm_ordered nb_test nullpscw
nullpscw_shm overlap_wins_acc overlap_wins_cas overlap_wins_fop overlap_wins_gacc overlap_wins_put pscw_ordering
pscw_ordering_shm put_base put_bottom put_flush_get putfence1 putfidx putpscw1 racc_local_comp req_example
req_example_shm reqops rget_testall rget_unlock rma_contig rmanull rmazero rput_local_comp selfrma strided_acc_indexed
strided_acc_onelock strided_acc_subarray strided_get_indexed strided_getacc_indexed strided_getacc_indexed_shared
strided_putget_indexed strided_putget_indexed_shared test1 test1_am test1_dt test2 test2_am test2_am_shm test2_shm test3
test3_am test3_am_shm test3_shm test4 test4_am test5 test5_am transpose1 transpose2 transpose3 transpose3_shm transpose4
transpose5 transpose6 transpose7 win_dynamic_acc win_dynamic_acc_flush_get win_dynamic_cas_flush_get
win_dynamic_fop_flush_get win_dynamic_gacc_flush_get win_dynamic_put_flush_get win_flavors win_info win_large_shm
win_shared win_shared_acc_flush_load win_shared_cas_flush_load win_shared_create_allocshm win_shared_create_no_allocshm
win_shared_fop_flush_load win_shared_gacc_flush_load win_shared_noncontig win_shared_noncontig_put
win_shared_put_flush_get win_shared_put_flush_load win_shared_query win_shared_query_null win_shared_zerobyte win_zero
wincall window_creation winname wintest wintest_shm
`;

/** MPICH, test/mpi/errors/rma. */
const MPICH_ERRORS = `
acc_op_type_check cas_type_check win_sync_complete win_sync_free_at win_sync_free_pt win_sync_lock_at
win_sync_lock_fence win_sync_lock_pt win_sync_nested win_sync_op win_sync_unlock winerr winerr2
`;

/** mpi4py, test_rma.py and test_win.py. */
const MPI4PY = `
testPutGet testAccumulate testGetAccumulate testPutProcNull testGetProcNull testAccumulateProcNullReplace
testAccumulateProcNullSum testFence testStartComplete testPostWait testStartCompletePostWait testStartCompletePostTest
testFlushSync testGetMemory testGetAttributes testGetSetErrhandler testGetSetName testFree
`;

/** ARMCI-MPI, tests. */
const ARMCI = `
test_acc_overlap test_accs test_accs_dla test_groups test_location_consistency test_malloc test_malloc_group
test_malloc_irreg test_mutex test_mutex_contention test_mutex_rmw test_mutex_trylock test_onesided test_onesided_shared
test_onesided_shared_dla test_puts test_puts_gets test_puts_gets_dla test_putv test_rmw_fadd test_win_create
test_win_model transp1D overlap test_group_split test_group_partition
`;

const names = (suite: string, list: string): string[] =>
  list
    .trim()
    .split(/\s+/)
    .map((name) => `${suite}/${name}`);

export const PROGRAMS: readonly string[] = [
  ...names('mpich', MPICH),
  ...names('mpich-errors', MPICH_ERRORS),
  ...names('mpi4py', MPI4PY),
  ...names('armci', ARMCI),
];

/** Programs that no requirement stands for, and why. */
export const NOT_APPLICABLE: Readonly<Record<string, string>> = {
  'mpich/attrorderwin': 'attributes of a program on a window: a property or a WeakMap does it in JavaScript',
  'mpich/fkeyvalwin': 'attributes of a program on a window: a property or a WeakMap does it in JavaScript',
  'armci/overlap': 'measures the overlap of communication and computation; results are not checked',
  'armci/test_onesided_shared_dla':
    'direct access to local memory between `begin` and `end`: `win.local` needs neither',
  'armci/test_group_partition': 'groups of ARMCI; `communicator.split` is tested with the communicators',
};
