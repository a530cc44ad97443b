//===- Peers.h - other engines, each in a process of its own --------------------------------------------*- C++ -*-===//
//
// A peer is a Python process (peer.py, which is part of the program) that loads the same model and times runs on
// request. One that crashes costs its own result only.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_BENCH_PEERS_H
#define TC_BENCH_PEERS_H

#include "tc/Bench/Report.h"
#include "tc/Run/Npz.h"

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace tc::bench {

/// A folder that goes with everything in it when its owner does. Throws a Failure with code 1.
class TemporaryFolder {
public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  ~TemporaryFolder();
  const std::string &path() const { return folder; }

private:
  std::string folder;
};

/// Names of the peers that --peers takes.
const std::vector<std::string> &peerNames();

/// The file that a peer reads for `model`: itself, or its neighbour of the same name with an extension that the peer
/// reads. Empty if there is none; `why` then says what would do.
std::string peerModel(const std::string &peer, const std::string &model, std::string &why);

class Peer {
public:
  /// Starts the process and waits until it has loaded the model and run it once. Look at problem() then.
  Peer(const std::string &name, const std::string &python, const std::string &model, const std::string &inputs,
       const TemporaryFolder &folder, uint32_t threads);
  Peer(const Peer &) = delete;
  ~Peer();

  const std::string &name() const { return peer; }
  const std::string &version() const { return versionText; }
  /// Why it cannot be measured; empty if it can.
  const std::string &problem() const { return problemText; }
  bool isAbsent() const { return absent; }
  double loadSeconds() const { return loadedIn; }
  /// How long its stages took, and the memory that the process has held so far.
  const EngineStart &start() const { return started; }
  /// Its outputs, by position.
  run::NamedTensors outputs() const;
  /// Times runs for about so long; empty, with a problem, if it fails.
  std::vector<double> measure(double seconds);

private:
  std::string readLine();

  std::string peer, versionText, problemText, outputsFile;
  bool absent = false;
  double loadedIn = 0;
  EngineStart started;
  pid_t process = -1;
  int toProcess = -1, fromProcess = -1;
  std::string pending; ///< read, but after the last line's end
};

} // namespace tc::bench

#endif // TC_BENCH_PEERS_H
