"""A step is 900 products of tiny matrices, called one after the other from Python."""

import torch
from torch import nn

STEPS, CELLS = 45, 900


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8) * 0.1)
        self.head = nn.Linear(8, 10)

    def forward(self, state):
        for _ in range(CELLS):
            state = torch.tanh(state @ self.weight)
        return self.head(state)


def train_step(model, optimizer, state, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(state), labels)
    loss.backward()
    optimizer.step()


def train():
    torch.set_num_threads(1)
    model = Recurrent()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    state, labels = torch.randn(4, 8), torch.randint(0, 10, (4,))
    for _ in range(STEPS):
        train_step(model, optimizer, state, labels)


if __name__ == "__main__":
    train()
