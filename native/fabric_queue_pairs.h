// Queue pairs of an engine, as calls of libibverbs.
#pragma once

#include "fabric_engine.h"

namespace onesided::fabric {

ibv_qp* createQp(ibv_pd* pd, ibv_qp_init_attr* attr);
int modifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask);
int queryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init);
int destroyQp(ibv_qp* qp);
// What stands for a peer where a queue pair is connected to it.
ibv_gid gidOf(uint32_t number);

}  // namespace onesided::fabric
