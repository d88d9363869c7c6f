// The thread of a Helper, with origins that put to its part and get from it, and ranks that ask for nonsense, on a
// device that is only bookkeeping (fake_verbs.cc). This thread plays JavaScript's.
//
// Who writes what. Each origin has a share of the part to itself. Bytes of the part and of the origins' memory are
// written by the device, in the call of whoever posts the second of a message's two ends: by an origin's thread or by
// the helper's, under the device's lock. An origin looks at what it has got when its completion has come, which that
// lock orders. This thread looks at the part when the origins have been joined. The helper's own state is this
// thread's before `start` and after `stop`, and touched here in between only to show that it would be seen.
#include "../rdma_helper.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <vector>

#include "stress.h"

namespace onesided {

struct HelperFault {
  static void touch(Helper& helper) { helper.lanes_.front().dead = false; }
};

}  // namespace onesided

namespace {

using namespace onesided;
using stress::Random;

constexpr size_t kOrigins = 3;
constexpr size_t kShare = 2048;
constexpr uint32_t kEntries = 6;
// Requests under way of an origin (src/verbs/helper.ts).
constexpr size_t kUnderWay = 4;
constexpr size_t kRequestBytes = 40 + Helper::kGroup * kEntries * 16;

const VerbsLibrary* verbs = nullptr;

ibv_qp* makeQp(ibv_pd* pd, ibv_cq* cq, uint32_t depth) {
  ibv_qp_init_attr attr{};
  attr.send_cq = cq;
  attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {depth, depth, kEntries, kEntries, 0};
  ibv_qp* qp = verbs->create_qp(pd, &attr);
  CHECK(qp != nullptr);
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  CHECK(verbs->modify_qp(qp, &init, IBV_QP_STATE) == 0);
  return qp;
}

void connect(ibv_qp* qp, const ibv_qp* to) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.dest_qp_num = to->qp_num;
  CHECK(verbs->modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN) == 0);
  attr.qp_state = IBV_QPS_RTS;
  CHECK(verbs->modify_qp(qp, &attr, IBV_QP_STATE) == 0);
}

struct Piece {
  size_t offset;
  uint32_t bytes;
};
using Message = std::vector<Piece>;

// A rank that asks. It is its thread's from the start of that to its end.
class Origin {
 public:
  Origin(ibv_context* context, ibv_pd* pd, size_t me)
      : share_(me * kShare), random_(me + 1), memory_(kUnderWay * (kRequestBytes + kShare)), mirror_(kShare) {
    cq_ = verbs->create_cq(context, 1000, nullptr, nullptr, 0);
    mr_ = verbs->reg_mr(pd, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
    CHECK(cq_ != nullptr && mr_ != nullptr);
    control_ = makeQp(pd, cq_, 2 * kUnderWay);
    data_ = makeQp(pd, cq_, kUnderWay * Helper::kGroup);
  }

  ~Origin() {
    for (ibv_qp* qp : {control_, data_}) CHECK(verbs->destroy_qp(qp) == 0);
    CHECK(verbs->dereg_mr(mr_) == 0);
    CHECK(verbs->destroy_cq(cq_) == 0);
  }

  ibv_qp* control() const { return control_; }
  ibv_qp* data() const { return data_; }
  const std::vector<unsigned char>& mirror() const { return mirror_; }

  // Tells it that nobody serves it any more: an answer that it waits for does not come.
  void lose() { lost_ = true; }

  // Puts and gets, until its connections break. Gives whether they have not.
  bool work(int rounds) {
    for (int round = 0; round < rounds; round++) {
      if (!(random_(2) == 0 ? put() : get())) return false;
    }
    return true;
  }

  // Asks for what nobody can do. Its connections break.
  void misbehave() {
    unsigned char* at = memory_.data();
    const uint32_t words[] = {1 + static_cast<uint32_t>(random_(3)), static_cast<uint32_t>(random_(11)),
                              static_cast<uint32_t>(random_(8))};
    std::memcpy(at, words, sizeof words);
    const double entry[] = {static_cast<double>(kOrigins * kShare), 1};
    std::memcpy(at + 40, entry, sizeof entry);
    CHECK(post(control_, {{0, static_cast<uint32_t>(random_(2) == 0 ? 56 : random_(kRequestBytes))}}, true) == 0);
    // Nobody takes it in.
    CHECK(post(data_, {}, true) == 0);
    while (wait(1)) {
    }
  }

 private:
  size_t slot(size_t request) const { return request * kRequestBytes; }
  size_t place(size_t request) const { return kUnderWay * kRequestBytes + request * kShare; }

  std::vector<Message> messages() {
    std::vector<Message> made(1 + random_(Helper::kGroup));
    size_t left = kShare;
    for (Message& message : made) {
      message.resize(1 + random_(kEntries));
      for (Piece& piece : message) {
        piece.bytes = static_cast<uint32_t>(random_(std::min<size_t>(left, 60)));
        piece.offset = random_(kShare - piece.bytes);
        left -= piece.bytes;
      }
    }
    return made;
  }

  static size_t bytesOf(const Message& message) {
    size_t sum = 0;
    for (const Piece& piece : message) sum += piece.bytes;
    return sum;
  }

  int post(ibv_qp* qp, const Message& from, bool signaled) {
    ibv_sge list[kEntries];
    for (size_t i = 0; i < from.size(); i++) list[i] = sge(from[i]);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = list;
    wr.num_sge = static_cast<int>(from.size());
    wr.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }

  int receive(ibv_qp* qp, const Message& to) {
    ibv_sge list[kEntries];
    for (size_t i = 0; i < to.size(); i++) list[i] = sge(to[i]);
    ibv_recv_wr wr{0, nullptr, list, static_cast<int>(to.size())};
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(qp, &wr, &bad);
  }

  ibv_sge sge(const Piece& piece) const {
    return {reinterpret_cast<uint64_t>(memory_.data()) + piece.offset, piece.bytes, mr_->lkey};
  }

  // Waits for so many completions. Gives whether all of them were good.
  bool wait(size_t count) {
    for (int looks = 0; count > 0;) {
      ibv_wc wc;
      const int n = ibv_poll_cq(cq_, 1, &wc);
      CHECK(n >= 0);
      // Of all that look, one only has something to do, on a machine that others use, too.
      if (n == 0 && lost_) return false;
      if (n == 0 && ++looks > 20) usleep(20);
      else if (n == 0) std::this_thread::yield();
      else if (wc.status != IBV_WC_SUCCESS) return false;
      else count--;
    }
    return true;
  }

  // Writes a request, and sends it.
  int ask(size_t request, uint32_t what, const std::vector<Message>& messages) {
    unsigned char* at = memory_.data() + slot(request);
    uint32_t header[10] = {what, static_cast<uint32_t>(messages.size())};
    size_t bytes = sizeof header;
    for (size_t m = 0; m < messages.size(); m++) {
      header[2 + m] = static_cast<uint32_t>(messages[m].size());
      for (const Piece& piece : messages[m]) {
        const double entry[] = {static_cast<double>(share_ + piece.offset), static_cast<double>(piece.bytes)};
        std::memcpy(at + bytes, entry, sizeof entry);
        bytes += sizeof entry;
      }
    }
    std::memcpy(at, header, sizeof header);
    return post(control_, {{slot(request), static_cast<uint32_t>(bytes)}}, true);
  }

  bool put() {
    const size_t count = 1 + random_(kUnderWay);
    std::vector<std::vector<Message>> asked(count);
    for (size_t i = 0; i < count; i++) {
      asked[i] = messages();
      CHECK(receive(control_, {}) == 0 && ask(i, 1, asked[i]) == 0);
    }
    // That all were sent, and all answers.
    if (!wait(2 * count)) return false;
    for (size_t i = 0; i < count; i++) {
      size_t from = place(i);
      for (const Message& message : asked[i]) {
        const auto bytes = static_cast<uint32_t>(bytesOf(message));
        for (const Piece& piece : message) {
          for (size_t b = 0; b < piece.bytes; b++, from++) {
            memory_[from] = mirror_[piece.offset + b] = static_cast<unsigned char>(random_(256));
          }
        }
        CHECK(post(data_, {{from - bytes, bytes}}, &message == &asked[i].back()) == 0);
      }
    }
    return wait(count);
  }

  bool get() {
    const size_t count = 1 + random_(kUnderWay);
    std::vector<std::vector<Message>> asked(count);
    size_t arriving = 0;
    for (size_t i = 0; i < count; i++) {
      asked[i] = messages();
      size_t to = place(i);
      for (const Message& message : asked[i]) {
        const auto bytes = static_cast<uint32_t>(bytesOf(message));
        CHECK(receive(data_, {{to, bytes}}) == 0);
        to += bytes;
        arriving++;
      }
      CHECK(ask(i, 2, asked[i]) == 0);
    }
    if (!wait(count + arriving)) return false;
    for (size_t i = 0; i < count; i++) {
      size_t from = place(i);
      for (const Message& message : asked[i]) {
        for (const Piece& piece : message) {
          for (size_t b = 0; b < piece.bytes; b++) CHECK(memory_[from++] == mirror_[piece.offset + b]);
        }
      }
    }
    return true;
  }

  // Written by the thread that plays JavaScript's.
  std::atomic<bool> lost_{false};
  const size_t share_;
  Random random_;
  std::vector<unsigned char> memory_;
  // What its share of the part has to be.
  std::vector<unsigned char> mirror_;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* control_ = nullptr;
  ibv_qp* data_ = nullptr;
};

}  // namespace

STRESS(bool fault) {
  const char* reason = nullptr;
  verbs = VerbsLibrary::open(&reason);
  CHECK(verbs != nullptr);
  int count = 0;
  ibv_device** devices = verbs->get_device_list(&count);
  CHECK(count == 1 && std::strcmp(verbs->get_device_name(devices[0]), "fake0") == 0);
  ibv_context* context = verbs->open_device(devices[0]);
  ibv_pd* pd = verbs->alloc_pd(context);
  Random random(11);
  for (int life = 0; life < 24; life++) {
    std::vector<unsigned char> part(kOrigins * kShare);
    ibv_mr* region = verbs->reg_mr(pd, part.data(), part.size(), IBV_ACCESS_LOCAL_WRITE);
    auto helper = std::make_unique<Helper>(verbs, context, pd, reinterpret_cast<uint64_t>(part.data()), part.size(),
                                           region->lkey, kEntries);
    // One more lane, for the rank that asks for nonsense.
    CHECK(helper->make(kOrigins + 1) == 0);
    std::vector<std::unique_ptr<Origin>> origins;
    std::vector<ibv_qp*> ends;
    for (size_t i = 0; i <= kOrigins; i++) {
      origins.push_back(std::make_unique<Origin>(context, pd, i));
      ibv_qp* control = makeQp(pd, helper->cq(), 2 * kUnderWay);
      ibv_qp* data = makeQp(pd, helper->cq(), kUnderWay * Helper::kGroup);
      ends.insert(ends.end(), {control, data});
      CHECK(helper->add(control, data) == 0);
      connect(control, origins[i]->control());
      connect(origins[i]->control(), control);
      connect(data, origins[i]->data());
      connect(origins[i]->data(), data);
    }
    CHECK(helper->start() == 0);
    // Every third helper ends while it is asked, so that its queue pairs and it may go under the origins' requests.
    const bool early = life % 3 == 2;
    bool through[kOrigins] = {};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kOrigins; i++) {
      threads.emplace_back([&, i] { through[i] = origins[i]->work(early ? 1 << 30 : 200); });
    }
    threads.emplace_back([&] { origins[kOrigins]->misbehave(); });
    for (int i = 0; fault && i < 100; i++) {
      HelperFault::touch(*helper);
      std::this_thread::yield();
    }
    if (early) {
      for (uint64_t i = random(400); i > 0; i--) std::this_thread::yield();
    } else {
      for (auto& thread : threads) thread.join();
    }
    helper->stop();
    helper->stop();
    CHECK(!helper->runs() && helper->start() != 0);
    for (ibv_qp* qp : ends) CHECK(verbs->destroy_qp(qp) == 0);
    CHECK(helper->release() == 0);
    helper.reset();
    if (early) {
      for (auto& origin : origins) origin->lose();
      for (auto& thread : threads) thread.join();
    }
    for (size_t i = 0; i < kOrigins; i++) {
      CHECK(through[i] != early);
      // Of a put that was under way, bytes may be missing.
      const auto share = part.begin() + static_cast<std::ptrdiff_t>(i * kShare);
      if (!early) CHECK(std::equal(share, share + kShare, origins[i]->mirror().begin()));
    }
    origins.clear();
    CHECK(verbs->dereg_mr(region) == 0);
  }
  CHECK(verbs->dealloc_pd(pd) == 0);
  CHECK(verbs->close_device(context) == 0);
  verbs->free_device_list(devices);
  std::puts("helper: everything arrived, and nothing else");
}
